//! A gateway whose provider leads back to it, through something that its configuration cannot know.

use crate::program::{Program, ask, chat, folder, get, tollgate};
use crate::serve::{KEY, configuration, write_configuration};
use rustix::process::Signal;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;

/// Copies bytes until one side ends.
fn copy(mut from: TcpStream, mut to: TcpStream) {
    // How it ended is the gateway's to judge.
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

#[test]
fn a_call_that_comes_back_is_refused_and_goes_round_once() {
    let folder = folder("round");
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    write_configuration(&folder, &configuration(proxy.local_addr().unwrap(), "auto"));
    // What the gateway shows its provider is good for itself.
    std::fs::write(folder.join("credential"), KEY).unwrap();
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
    let mut program = Program::start(tollgate(&folder, &["serve", "--no-pin"]));
    let address = |text: String| text.replace("http://", "").parse().expect("an address");
    let admin = address(program.err.wait_for("admin"));
    let data = address(program.err.wait_for("data"));
    program.err.wait_for("ready");
    found.send(data).unwrap();

    let answer = ask(data, &chat(KEY, "ok"));
    assert!(answer.starts_with("HTTP/1.1 508 Loop Detected\r\n"), "{answer}");
    assert!(answer.contains("\"code\":\"loop_detected\""), "{answer}");
    let metrics = get(admin, "/metrics");
    for line in [
        "tollgate_refusals_total{code=\"loop_detected\"} 1",
        "tollgate_attempts_total 1",
        "tollgate_records_total 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} in {metrics}");
    }
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(0));
}
