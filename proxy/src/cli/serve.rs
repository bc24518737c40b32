//! `tollgate serve [FILE]`: a node, its control thread, and the lines that say what was started.
//!
//! This thread is the control thread. Start-up lines go to the standard error, records (with
//! `--print-records`) to the standard output, so that either can be piped alone.

use super::{EXIT_CUT, EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE, FILE, descriptors, output};
use crate::admin::socket::Socket;
use crate::admin::{self, Watched};
use crate::config::check::provider_line;
use crate::config::snapshot::Host;
use crate::config::{self, Config, ProcessEnv};
use crate::control::certificates::{self, Said};
use crate::control::desk::{Desk, Log};
use crate::control::keys::Declared;
use crate::control::printing::Printer;
use crate::control::receipt::{self, Names};
use crate::control::resolver;
use crate::control::signals::{Hangup, Signals};
use crate::io::tls::ServerTls;
use crate::server::{Node, Options, StartError, upstreams};
use crate::shard::clock;
use crate::shard::mailbox::Letter;
use crate::upstream::addresses::Addresses;
use clap::Args;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often a draining node is asked whether it is done, and a serving one whether it is whole.
const LOOK: Duration = Duration::from_millis(50);

/// How often the next windows of budgets are prepared: a window is, a day ahead.
const PREPARE: Duration = Duration::from_secs(600);

/// How long the last records may take to be read by whoever reads them.
const PRINT_MAX: Duration = Duration::from_secs(5);

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The configuration [default: ./tollgate.toml]
    file: Option<PathBuf>,
    /// Print each settled record as one line of JSON on the standard output
    #[arg(long)]
    print_records: bool,
    /// Let the kernel move shards between cores, also if there are as many shards as cores
    #[arg(long)]
    no_pin: bool,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let file = match &arguments.file {
        Some(file) => file,
        None if Path::new(FILE).exists() => Path::new(FILE),
        None => {
            output::tell(NOTHING_TO_SERVE);
            return EXIT_UNUSABLE;
        }
    };
    let config = match config::load(file, &ProcessEnv) {
        Ok(config) => config,
        Err(errors) => {
            output::tell(&errors.to_string());
            return EXIT_UNUSABLE;
        }
    };
    serve(&config, arguments).unwrap_or_else(|error| {
        output::tell(&format!("tollgate: {error}"));
        EXIT_FAILED
    })
}

/// Said when there is no file; providers from the environment come with a later landing.
const NOTHING_TO_SERVE: &str = "\
tollgate: nothing to serve: there is no ./tollgate.toml and no provider in the environment
  see it work      tollgate demo
  write a file     docs/reference/config.md, README.md; then: tollgate serve FILE";

fn serve(config: &Config, arguments: &Arguments) -> io::Result<u8> {
    // Before the threads: the allocator's parameters are the process's.
    crate::io::heap::settle();
    let limit = descriptors::raise();
    let admin = std::net::TcpListener::bind(config.listen_admin)
        .map_err(|error| at("admin", config.listen_admin, &error))?;
    admin.set_nonblocking(true)?;
    let options = Options { keep_records: arguments.print_records, pin: !arguments.no_pin };
    let node = Node::start(config, &options).map_err(|error| match error {
        StartError::Io(error) => at("data", config.listen_data, &error),
        error => io::Error::other(error),
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(control(config, arguments, node, admin, &limit));
    // A name look-up under way is no reason to stay.
    runtime.shutdown_background();
    code
}

/// The control thread's work, from the moment the shards take connections to the end.
async fn control(
    config: &Config,
    arguments: &Arguments,
    node: Node,
    admin: std::net::TcpListener,
    limit: &str,
) -> io::Result<u8> {
    // Until here a signal did what it does by default: nothing was promised to anybody.
    let signals = Signals::install()?;
    let mut watched = Watched::new(node.counters.clone(), clock::now().wall.0);
    if let Some(books) = &node.books {
        watched = watched.with_ledger(books.ledger.gauges());
    }
    let snapshot = config.snapshot.clone();
    let upstreams = move || upstreams::states(&snapshot, clock::mono());
    let watched = Arc::new(watched.with_upstreams(Box::new(upstreams)));
    let desk = open_desk(config, &node)?;
    let printer = arguments.print_records.then(|| print_records(config, &node)).transpose()?;
    let admin_address = admin.local_addr()?;
    tokio::spawn(admin::serve(tokio::net::TcpListener::from_std(admin)?, watched.clone()));
    let post = node.post.clone();
    let publish = move |fresh: &Arc<Addresses>| post.tell(|| Letter::Addresses(fresh.clone()));
    let known = node.addresses.clone();
    tokio::spawn(resolver::follow(config.snapshot.clone(), known, publish));
    follow_certificates(config, &node)?;
    tell_start(config, &node, limit, admin_address);
    let code =
        until_stopped(node, &watched, signals, printer, config.snapshot.deadlines.drain).await;
    // Asked before its end, the desk removes its socket.
    desk.inspect(JoinHandle::abort);
    Ok(code)
}

fn at(what: &str, address: std::net::SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {address}: {error}"))
}

/// Every line has a word and its value, for people and for `grep`.
fn tell_start(config: &Config, node: &Node, limit: &str, admin: std::net::SocketAddr) {
    let line = |word: &str, value: &str| output::tell(&format!("{word:<12}{value}"));
    for warning in &config.warnings {
        line("warning", &warning.located(&config.file));
    }
    let snapshot = &config.snapshot;
    line("tollgate", env!("CARGO_PKG_VERSION"));
    line("config", &format!("{}, snapshot {}", config.file, snapshot.version));
    if let Some(name) = &config.node {
        line("node", name);
    }
    line("descriptors", limit);
    line("shards", &node.drivers.len().to_string());
    for (number, driver) in node.drivers.iter().enumerate() {
        let core = node.cores.get(number).map_or_else(String::new, |core| format!(", core {core}"));
        line("shard", &format!("{number}, driver {driver}{core}"));
    }
    for provider in &snapshot.providers {
        line("provider", &provider_line(provider));
    }
    for provider in &snapshot.providers {
        if let Host::Name(host) = &provider.host
            && node.addresses.of_name(host).is_empty()
        {
            let name = &provider.name;
            line("warning", &format!("{name}: no address of {host} yet; calls get 502 until then"));
        }
    }
    line("models", &format!("{}, aliases {}", snapshot.models.len(), snapshot.aliases.len()));
    line("keys", &node.keys.len().to_string());
    line("prices", &format!("version {}", snapshot.prices.version));
    tell_ledger(config, node);
    line("admin", &format!("http://{admin}"));
    let scheme = if config.listen_tls.is_some() { "https" } else { "http" };
    line("data", &format!("{scheme}://{}", node.data));
    line("ready", "stop with SIGINT or SIGTERM");
}

/// Takes new certificates up, if the listener has any.
fn follow_certificates(config: &Config, node: &Node) -> io::Result<()> {
    let Some(listen) = config.listen_tls.clone() else { return Ok(()) };
    let hangup = Hangup::install()?;
    let post = node.post.clone();
    let publish = move |tls: &Arc<ServerTls>| post.tell(|| Letter::Identity(tls.clone()));
    let tell = |said: Said| {
        let (word, text) = match said {
            Said::Taken(text) => ("certificate", text),
            Said::Refused(text) => ("warning", text),
        };
        output::tell(&format!("{word:<12}{text}"));
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

/// Where the ledger is, and what its opening found.
fn tell_ledger(config: &Config, node: &Node) {
    let line = |word: &str, value: &str| output::tell(&format!("{word:<12}{value}"));
    let (Some(settings), Some(books)) = (&config.ledger, &node.books) else {
        return line("ledger", "none");
    };
    let last = books.ledger.position().durable.next_seq.saturating_sub(1);
    let place = settings.state_dir.display();
    line("ledger", &format!("{place}, {last} records; {}", books.found));
    for warning in books.found.warnings() {
        line("warning", &warning);
    }
    let Declared { added, changed, disabled, revoked } = &books.declared;
    for (names, what) in [(added, "added"), (changed, "changed"), (disabled, "switched off")] {
        if !names.is_empty() {
            line("keys", &format!("{what} by the configuration: {}", names.join(", ")));
        }
    }
    for name in revoked {
        line("warning", &format!("key {name} of the configuration is revoked and stays so"));
    }
}

fn print_records(config: &Config, node: &Node) -> io::Result<Printer> {
    let names = Names::of(&config.snapshot, &node.keys);
    let records = node.records.clone();
    Printer::start(
        move |each| records.take(each),
        move |record| receipt::json_line(record, &names),
        output::print,
    )
}

/// Serves until a signal, then drains; the exit code.
async fn until_stopped(
    mut node: Node,
    watched: &Watched,
    mut signals: Signals,
    printer: Option<Printer>,
    drain_max: Duration,
) -> u8 {
    let mut look = tokio::time::interval(LOOK);
    let mut code = EXIT_OK;
    let why = loop {
        tokio::select! {
            name = signals.next() => break name,
            _ = look.tick() => if let Some(why) = broken(&node) {
                code = EXIT_FAILED;
                break why;
            },
        }
    };
    watched.drain();
    node.begin_drain();
    let begun = clock::mono();
    let seconds = drain_max.as_secs();
    output::tell(&format!("{:<12}{why}: exchanges may end for {seconds} s", "draining"));
    while !node.is_over() {
        tokio::select! {
            name = signals.next() => {
                output::tell(&format!("{:<12}{name} again: exchanges are cut", "stopped"));
                node.abandon();
                return EXIT_CUT;
            },
            _ = look.tick() => {}
        }
    }
    let took = Duration::from_nanos(clock::mono().since(begun));
    if let Err(error) = node.drain() {
        output::tell(&format!("{:<12}the ledger: {error}", "warning"));
        code = EXIT_FAILED;
    }
    if let Some(printer) = printer
        && tokio::time::timeout(PRINT_MAX, print_rest(&printer)).await.is_err()
    {
        output::tell(&format!("{:<12}nobody reads the records: the last are lost", "warning"));
    }
    if took >= drain_max && code == EXIT_OK {
        output::tell(&format!("{:<12}the time is over: exchanges are cut", "stopped"));
        return EXIT_CUT;
    }
    output::tell(&format!("{:<12}drained", "stopped"));
    code
}

/// What has ended that must not end by itself.
fn broken(node: &Node) -> Option<&'static str> {
    if node.ended() > 0 {
        return Some("a shard has ended by itself");
    }
    let over = node.books.as_ref().is_some_and(|books| books.ledger.is_over());
    over.then_some("the ledger's thread has ended by itself")
}

/// Waits until what was settled is printed.
async fn print_rest(printer: &Printer) {
    printer.finish();
    while !printer.is_over() {
        tokio::time::sleep(LOOK).await;
    }
}
