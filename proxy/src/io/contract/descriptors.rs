//! A process out of descriptors: `accept` says so each time it is asked, and neither spins
//! inside nor loses who waits. What the caller does about it (wait a tick) is its affair.

use super::stage::{RingStage, Stage, on_ring};
use crate::io::runtime::Choice;
use crate::io::script::ScriptWorld;
use crate::io::{Io, TICK};
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

/// Descriptors the second process may have: enough for a runtime and a listener.
const DESCRIPTORS: u64 = 64;

#[test]
fn scripted_accept_fails_as_often_as_asked_and_a_caller_that_waits_a_tick_does_not_spin() {
    let world = ScriptWorld::new(0);
    let at = SocketAddr::from(([127, 0, 0, 1], 80));
    let listener = world.listen(at).unwrap();
    world.fail_accepts(at, 7, libc::EMFILE).unwrap();
    let io = world.io();
    let errors = world.run_until(async {
        let _client = io.dial(at).unwrap();
        let mut errors = 0;
        while let Err(e) = io.accept(&listener).await {
            assert_eq!(e.raw_os_error(), Some(libc::EMFILE));
            errors += 1;
            io.tick().await;
        }
        errors
    });
    assert_eq!(errors, Ok(7));
    assert_eq!(u128::from(world.now().mono.0), 7 * TICK.as_nanos());
}

/// The limit is the process's, so the check runs in one of its own: this test started again
/// under a lowered limit, which is how it knows that it is the second.
#[test]
fn real_accept_reports_each_failure_and_then_the_connection() {
    if soft_limit() <= DESCRIPTORS {
        on_ring(Choice::Uring, out_of_descriptors);
        on_ring(Choice::Epoll, out_of_descriptors);
        return;
    }
    let name =
        "io::contract::descriptors::real_accept_reports_each_failure_and_then_the_connection";
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("ulimit -Sn {DESCRIPTORS} && exec \"$0\" \"$@\""))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{said}");
}

async fn out_of_descriptors(stage: RingStage) {
    let io = stage.io();
    let (listener, at) = stage.listen();
    let client = TcpStream::connect(at).unwrap();
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    for _ in 0..20 {
        let error = io.accept(&listener).await.map(drop).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
    }
    files.clear();
    let (_stream, from) = io.accept(&listener).await.unwrap();
    assert_eq!(from, client.local_addr().unwrap());
}

/// Descriptors this process may open.
fn soft_limit() -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let soft = line.split_whitespace().nth(3).unwrap();
    soft.parse().unwrap_or(u64::MAX)
}
