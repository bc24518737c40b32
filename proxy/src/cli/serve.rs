//! `tollgate serve [FILE]`: a node, its control thread, and the lines that say what was started.
//!
//! This thread is the control thread. Start-up lines go to the standard error, records (with
//! `--print-records`) to the standard output, so that either can be piped alone. What is told is
//! in `serve/told.rs`, how it ends in `serve/stopping.rs`.

mod clients;
mod logs;
mod stopping;
mod told;

use super::{EXIT_FAILED, EXIT_UNUSABLE, NOTHING_TO_SERVE, configuration, descriptors, output};
use crate::admin::socket::Socket;
use crate::admin::{self, Watched};
use crate::config::log::Access;
use crate::config::{Config, ProcessEnv};
use crate::control::certificates::{self, Said};
use crate::control::desk::{Desk, Log};
use crate::control::logfile::LogFile;
use crate::control::resolver;
use crate::control::signals::{Hangup, Signals};
use crate::io::tls::ServerTls;
use crate::server::{Node, Options, StartError, upstreams};
use crate::shard::clock;
use crate::shard::mailbox::Letter;
use crate::upstream::addresses::Addresses;
use clap::Args;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often the next windows of budgets are prepared: a window is, a day ahead.
const PREPARE: Duration = Duration::from_secs(600);

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The configuration [default: ./tollgate.toml, else the providers of the environment]
    file: Option<PathBuf>,
    /// Print each settled record as one line of JSON on the standard output
    #[arg(long)]
    print_records: bool,
    /// Let the kernel move shards between cores, also if there are as many shards as cores
    #[arg(long)]
    no_pin: bool,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let config = match configuration(arguments.file.as_deref()) {
        Some(Ok(config)) => config,
        Some(Err(errors)) => {
            output::tell(&errors.to_string());
            return EXIT_UNUSABLE;
        }
        None => {
            output::tell(NOTHING_TO_SERVE);
            return EXIT_UNUSABLE;
        }
    };
    serve(&config, arguments).unwrap_or_else(|error| {
        output::tell(&format!("tollgate: {error}"));
        EXIT_FAILED
    })
}

fn serve(config: &Config, arguments: &Arguments) -> io::Result<u8> {
    // Before the threads: the allocator's parameters are the process's.
    crate::io::heap::settle();
    let limit = descriptors::raise();
    let admin = std::net::TcpListener::bind(config.listen_admin)
        .map_err(|error| at("admin", config.listen_admin, &error))?;
    admin.set_nonblocking(true)?;
    let access = logs::access(config, arguments.print_records);
    let file = logs::open(&access)?;
    let options = Options { keep_records: logs::keep(config, &access), pin: !arguments.no_pin };
    let node = Node::start(config, &options).map_err(|error| match error {
        StartError::Io(error) => at("data", config.listen_data, &error),
        error => io::Error::other(error),
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(control(config, (access, file), node, admin, &limit));
    // A name look-up or a read of a file under way is no reason to stay.
    runtime.shutdown_background();
    code
}

/// The control thread's work, from the moment the shards take connections to the end.
async fn control(
    config: &Config,
    (access, file): (Access, Option<LogFile>),
    node: Node,
    admin: std::net::TcpListener,
    limit: &str,
) -> io::Result<u8> {
    let mut watched = Watched::new(node.counters.clone(), clock::now().wall.0);
    // From here on who tells something waits for no reader.
    output::tell_beside(watched.lines_lost().clone())?;
    output::tell_panics();
    // Until here a signal did what it does by default: nothing was promised to anybody.
    let signals = Signals::install()?;
    if let Some(books) = &node.books {
        watched = watched.with_ledger(books.ledger.gauges());
    }
    let snapshot = config.snapshot.clone();
    let upstreams = move || upstreams::states(&snapshot, clock::mono());
    let watched = Arc::new(watched.with_upstreams(Box::new(upstreams)));
    let desk = open_desk(config, &node)?;
    let output_is_taken = access == Access::Output;
    let printer = logs::start(config, &node, (&access, file), watched.lines_lost())?;
    let admin_address = admin.local_addr()?;
    tokio::spawn(admin::serve(tokio::net::TcpListener::from_std(admin)?, watched.clone()));
    let post = node.post.clone();
    let publish = move |fresh: &Arc<Addresses>| post.tell(|| Letter::Addresses(fresh.clone()));
    let known = node.addresses.clone();
    tokio::spawn(resolver::follow(config.snapshot.clone(), known, publish));
    follow_certificates(config, &node)?;
    let first = told::first_key(&node, clock::now().wall).map_err(io::Error::other)?;
    told::start(config, &node, limit, admin_address);
    let told = first.and_then(|text| told::tell_first_key(&text, output_is_taken));
    let code = stopping::until(node, &watched, signals, printer, &config.snapshot.deadlines).await;
    if told.is_some_and(|told| !told.is_finished()) {
        told::first_key_is_lost();
    }
    // Asked before its end, the desk removes its socket.
    desk.inspect(JoinHandle::abort);
    Ok(code)
}

fn at(what: &str, address: std::net::SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {address}: {error}"))
}

/// Takes new certificates up, if the listener has any.
fn follow_certificates(config: &Config, node: &Node) -> io::Result<()> {
    let Some(listen) = config.listen_tls.clone() else { return Ok(()) };
    let hangup = Hangup::install()?;
    let post = node.post.clone();
    let publish = move |tls: &Arc<ServerTls>| post.tell(|| Letter::Identity(tls.clone()));
    let tell = |said: Said| match said {
        Said::Taken(text) => told::line("certificate", &text),
        Said::Refused(text) => told::line("warning", &text),
    };
    tokio::spawn(certificates::follow(listen, hangup, ProcessEnv, publish, tell));
    Ok(())
}

/// Opens the desk, and looks after the budgets' windows.
fn open_desk(config: &Config, node: &Node) -> io::Result<Option<JoinHandle<io::Result<()>>>> {
    let (Some(settings), Some(books)) = (&config.ledger, &node.books) else { return Ok(None) };
    let keys = books.keys.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(PREPARE).await;
            keys.prepare(clock::now().wall);
        }
    });
    let socket = Socket::bind(&settings.state_dir).map_err(|error| {
        io::Error::new(error.kind(), format!("{}: {error}", settings.state_dir.display()))
    })?;
    let log = Log {
        node: books.node,
        position: Box::new(books.ledger.positions()),
        gauges: books.ledger.gauges(),
        providers: config.snapshot.providers.iter().map(|p| p.name.clone()).collect(),
    };
    let desk = Desk::new(books.keys.clone(), Some(log), clock::now);
    Ok(Some(tokio::spawn(socket.serve(Arc::new(desk)))))
}
