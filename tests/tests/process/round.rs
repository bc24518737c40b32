//! A gateway whose provider leads back to it, through something that its configuration cannot know.

use crate::program::{Program, ask, chat, folder, get, tollgate};
use crate::serve::{KEY, configuration, write_configuration};
use rustix::process::Signal;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};

/// Copies bytes until one side ends.
fn copy(mut from: TcpStream, mut to: TcpStream) {
    // How it ended is the gateway's to judge.
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

/// Something that leads to a place which is told later.
fn proxy() -> (SocketAddr, Sender<SocketAddr>) {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = proxy.local_addr().unwrap();
    let (found, place) = channel::<SocketAddr>();
    std::thread::spawn(move || {
        let Ok(data) = place.recv() else { return };
        for client in proxy.incoming().map_while(Result::ok) {
            let Ok(back) = TcpStream::connect(data) else { return };
            let (other, yonder) = (client.try_clone().unwrap(), back.try_clone().unwrap());
            std::thread::spawn(move || copy(client, back));
            std::thread::spawn(move || copy(yonder, other));
        }
    });
    (address, found)
}

struct Gateway {
    program: Program,
    admin: SocketAddr,
    data: SocketAddr,
}

impl Gateway {
    /// One whose provider is there. What it shows its provider is good for every one of these.
    fn before(name: &str, provider: SocketAddr) -> Gateway {
        let folder = folder(name);
        write_configuration(&folder, &configuration(provider, "auto"));
        std::fs::write(folder.join("credential"), KEY).unwrap();
        let mut program = Program::start(tollgate(&folder, &["serve", "--no-pin"]));
        let address = |text: String| text.replace("http://", "").parse().expect("an address");
        let admin = address(program.err.wait_for("admin"));
        let data = address(program.err.wait_for("data"));
        program.err.wait_for("ready");
        Gateway { program, admin, data }
    }

    fn assert_metrics(&self, lines: &[&str]) {
        let metrics = get(self.admin, "/metrics");
        for line in lines {
            assert!(metrics.lines().any(|found| found == *line), "{line} in {metrics}");
        }
    }

    fn stop(mut self) {
        self.program.signal(Signal::TERM);
        assert_eq!(self.program.wait(), Some(0));
    }
}

#[test]
fn a_call_that_comes_back_is_refused_and_goes_round_once() {
    let (provider, found) = proxy();
    let gateway = Gateway::before("round", provider);
    found.send(gateway.data).unwrap();

    let answer = ask(gateway.data, &chat(KEY, "ok"));
    assert!(answer.starts_with("HTTP/1.1 508 Loop Detected\r\n"), "{answer}");
    assert!(answer.contains("\"code\":\"loop_detected\""), "{answer}");
    gateway.assert_metrics(&[
        "tollgate_refusals_total{code=\"loop_detected\"} 1",
        "tollgate_attempts_total 1",
        "tollgate_records_total 1",
    ]);
    gateway.stop();
}

#[test]
fn a_circle_of_gateways_ends_where_it_began_after_one_turn() {
    let (provider, found) = proxy();
    let first = Gateway::before("circle-first", provider);
    let third = Gateway::before("circle-third", first.data);
    let second = Gateway::before("circle-second", third.data);
    found.send(second.data).unwrap();

    let answer = ask(first.data, &chat(KEY, "ok"));
    assert!(answer.starts_with("HTTP/1.1 508 Loop Detected\r\n"), "{answer}");
    let refused = "tollgate_refusals_total{code=\"loop_detected\"}";
    let once = ["tollgate_attempts_total 1", "tollgate_records_total 1"];
    first.assert_metrics(&[once[0], once[1], &format!("{refused} 1")]);
    for other in [&second, &third] {
        other.assert_metrics(&[once[0], once[1], &format!("{refused} 0")]);
    }
    [first, second, third].into_iter().for_each(Gateway::stop);
}
