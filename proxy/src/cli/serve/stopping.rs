//! How a node stops, by its signals. The first one: not ready from now on; connections are taken
//! for the time of the notice, so that whoever asks whether it is ready sees that and sends nobody
//! any more; then the listeners close, and what is under way may end within the drain. The second
//! one: what is under way is told so, settled as `shutdown`, and cut.
//!
//! Bounds: the deadlines of the configuration, [`CUT_MAX`], [`PRINT_MAX`].

use super::told::line;
use crate::admin::Watched;
use crate::cli::{EXIT_CUT, EXIT_FAILED, EXIT_OK};
use crate::config::snapshot::Deadlines;
use crate::control::printing::Printer;
use crate::control::signals::Signals;
use crate::server::Node;
use crate::shard::clock;
use std::time::Duration;

/// How often a draining node is asked whether it is done, and a serving one whether it is whole.
const LOOK: Duration = Duration::from_millis(50);

/// How long shards may take to end what is cut: two seconds of theirs, and to notice. Whoever sends
/// a second signal is in a hurry, and what is left then is settled by the next start.
const CUT_MAX: Duration = Duration::from_secs(3);

/// How long the last records may take to be read by whoever reads them.
const PRINT_MAX: Duration = Duration::from_secs(5);

/// The same after a second signal.
const PRINT_CUT_MAX: Duration = Duration::from_millis(500);

/// Serves until a signal, then stops; the exit code.
pub(super) async fn until(
    node: Node,
    watched: &Watched,
    mut signals: Signals,
    printer: Option<Printer>,
    deadlines: &Deadlines,
) -> u8 {
    let mut code = EXIT_OK;
    let why = tokio::select! {
        name = signals.next() => name,
        why = broken(&node) => {
            code = EXIT_FAILED;
            why
        }
    };
    // Before anything else changes: who asks is to know first.
    watched.drain();
    node.notice();
    let begun = clock::mono();
    let drained = async {
        if !deadlines.drain_notice.is_zero() && code == EXIT_OK {
            let seconds = deadlines.drain_notice.as_secs_f32();
            line("draining", &format!("{why}: not ready; connections are taken for {seconds} s"));
            tokio::time::sleep(deadlines.drain_notice).await;
        }
        node.begin_drain();
        let seconds = deadlines.drain.as_secs_f32();
        line("draining", &format!("{why}: exchanges may end for {seconds} s"));
        over(&node).await;
    };
    let again = tokio::select! {
        () = drained => None,
        name = signals.next() => Some(name),
    };
    if let Some(name) = again {
        line("stopped", &format!("{name} again: exchanges are cut"));
        return cut(node, printer).await;
    }
    let took = Duration::from_nanos(clock::mono().since(begun));
    // Whoever sends a second signal now has no patience with a reader either.
    let hurry = async {
        signals.next().await;
    };
    code = code.max(finish(node, printer, (PRINT_MAX, hurry)).await);
    if took >= deadlines.drain_notice + deadlines.drain && code == EXIT_OK {
        line("stopped", "the time is over: exchanges are cut");
        return EXIT_CUT;
    }
    line("stopped", "drained");
    code
}

/// Ends what is under way. Exit code 3, unless the ledger fails too.
async fn cut(node: Node, printer: Option<Printer>) -> u8 {
    node.cut();
    if tokio::time::timeout(CUT_MAX, over(&node)).await.is_err() {
        line("warning", "not all exchanges have ended: the next start settles the rest");
        node.abandon();
        return EXIT_CUT;
    }
    match finish(node, printer, (PRINT_CUT_MAX, std::future::pending())).await {
        EXIT_OK => EXIT_CUT,
        code => code,
    }
}

/// What is left to do once every shard has ended. The last records are waited for so long, or until
/// there is a hurry.
async fn finish(
    mut node: Node,
    printer: Option<Printer>,
    (print_max, hurry): (Duration, impl Future<Output = ()>),
) -> u8 {
    let mut code = EXIT_OK;
    if let Err(error) = node.drain() {
        line("warning", &format!("the ledger: {error}"));
        code = EXIT_FAILED;
    }
    let Some(printer) = printer else { return code };
    let printed = tokio::select! {
        printed = tokio::time::timeout(print_max, print_rest(&printer)) => printed.is_ok(),
        () = hurry => printer.is_over(),
    };
    if !printed {
        line("warning", "nobody reads the records: the last are lost");
    }
    code
}

/// Waits until every shard has ended.
async fn over(node: &Node) {
    let mut look = tokio::time::interval(LOOK);
    while !node.is_over() {
        look.tick().await;
    }
}

/// Waits until something has ended that must not end by itself.
async fn broken(node: &Node) -> &'static str {
    let mut look = tokio::time::interval(LOOK);
    loop {
        look.tick().await;
        if node.ended() > 0 {
            return "a shard has ended by itself";
        }
        if node.books.as_ref().is_some_and(|books| books.ledger.is_over()) {
            return "the ledger's thread has ended by itself";
        }
    }
}

/// Waits until what was settled is printed.
async fn print_rest(printer: &Printer) {
    printer.finish();
    while !printer.is_over() {
        tokio::time::sleep(LOOK).await;
    }
}
