//! What is loaded, what is refused.

use std::net::SocketAddr;

use super::{all_of, ask, connect};
use crate::standin::{Config, Standin, StartError};

fn start(text: &str) -> Result<Standin, StartError> {
    Standin::start(Config { scenarios: vec![text.to_owned()], ..Config::default() })
}

#[test]
fn further_scenarios_are_data() {
    let standin = start(
        "[[scenario]]\nname = \"teapot\"\nabout = \"a\"\nsteps = [{ answer = { status = 418, \
         reason = \"I'm a teapot\" } }]\n\
         [[scenario]]\nname = \"s400\"\nabout = \"replaced\"\nsteps = [{ answer = {} }]\n",
    )
    .unwrap();
    let mut stream = connect(&standin);
    assert!(ask(&mut stream, "teapot", "").1.starts_with("HTTP/1.1 418 I'm a teapot\r\n"));
    assert_eq!(ask(&mut stream, "s400", "").0, 200);
}

#[test]
fn scenarios_without_meaning_are_refused_at_start() {
    for (steps, reason) in [
        ("", "neither steps nor rounds"),
        ("steps = [{ answer = {} }]\nrounds = [[\"close\"]]", "both steps and rounds"),
        ("steps = [\"close\", { answer = {} }]", "after the end"),
        ("steps = [{ read = 5 }, { answer = {} }]", "half read"),
        ("steps = [{ answer = {} }, { read = 5 }, \"close\"]", "after its first step"),
        ("steps = [{ wait-ms = \"{n}\" }]", "no {n} in its name"),
        ("steps = [{ wait-ms = \"n\" }]", "neither a number"),
        ("steps = [{ answer = {} }]\nsplit = 0", "split = 0"),
        ("steps = [{ answer = { framing = \"chunked\", chunk-bytes = 0 } }]", "chunk-bytes"),
        ("steps = [{ answer = { body = { completion = { size = 999999999 } } } }]", "is above"),
        ("steps = [{ leap = 1 }]", "unknown variant"),
        ("steps = []\ncolour = 1", "unknown field"),
    ] {
        let text = format!("[[scenario]]\nname = \"x\"\nabout = \"a\"\n{steps}\n");
        let error = start(&text).expect_err(steps).to_string();
        assert!(error.contains(reason), "{steps}: {error}");
    }
}

#[test]
fn a_name_that_is_almost_a_scenario_plays_ok() {
    let standin = Standin::start(Config::default()).unwrap();
    for model in ["slow-", "slow-x", "big-99999999999m", "ok+split=0", "ok+what=1", "", "ünïcode"]
    {
        let (bytes, _) = all_of(&standin, model);
        assert!(bytes.starts_with(b"HTTP/1.1 200 OK\r\n"), "{model}");
        assert_eq!(standin.tally().last().unwrap().script, "ok", "{model}");
    }
}

#[test]
fn only_loopback_is_listened_on() {
    let listen = vec![SocketAddr::from(([0, 0, 0, 0], 0))];
    let error = Standin::start(Config { listen, ..Config::default() }).expect_err("open");
    assert!(error.to_string().contains("not loopback"), "{error}");
}

#[test]
fn several_listeners_share_one_tally() {
    let listen = vec![SocketAddr::from(([127, 0, 0, 1], 0)); 2];
    let standin = Standin::start(Config { listen, ..Config::default() }).unwrap();
    let mut second = std::net::TcpStream::connect(standin.addrs()[1]).unwrap();
    ask(&mut second, "s404", "");
    ask(&mut connect(&standin), "s400", "");
    let scripts: Vec<_> = standin.tally().into_iter().map(|entry| entry.script).collect();
    assert_eq!(scripts, ["s404", "s400"]);
}
