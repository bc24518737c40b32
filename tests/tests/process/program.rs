//! A started program, its lines as they come, and a request to a port.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Longest wait for a line or an end, on a machine that has other work.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder of this test's own, emptied.
pub(crate) fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    // What its last run has left in memory, killed nodes mostly, goes with it.
    let slabs = std::fs::read_to_string(path.join("state/slabs")).unwrap_or_default();
    for left in slabs.lines().filter(|left| left.starts_with("/dev/shm/tollgate-")) {
        // One that a clean end has removed is not there.
        let _ = std::fs::remove_dir_all(left);
    }
    if path.exists() {
        std::fs::remove_dir_all(&path).expect("the last run's folder goes");
    }
    std::fs::create_dir_all(&path).expect("a folder can be made");
    path
}

/// `tollgate-under-test` with these arguments, in `folder`.
pub(crate) fn tollgate(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate-under-test"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// A program under way; dropping it kills it.
pub(crate) struct Program {
    child: Child,
    pub(crate) out: Lines,
    pub(crate) err: Lines,
}

/// The lines of a pipe.
pub(crate) struct Lines {
    coming: Receiver<String>,
    seen: Vec<String>,
}

impl Lines {
    fn none() -> Lines {
        Lines { coming: channel().1, seen: Vec::new() }
    }

    fn of(pipe: impl Read + Send + 'static) -> Lines {
        let (send, coming) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Lines { coming, seen: Vec::new() }
    }

    /// Waits for a line that begins so; what follows the beginning.
    pub(crate) fn wait_for(&mut self, beginning: &str) -> String {
        loop {
            match self.coming.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.seen.push(line);
                    let line = self.seen.last().map(String::as_str).unwrap_or_default();
                    if let Some(rest) = line.strip_prefix(beginning) {
                        return rest.trim().to_owned();
                    }
                }
                Err(why) => panic!("no line {beginning:?} ({why}) after {:#?}", self.seen),
            }
        }
    }

    /// The lines waited through so far.
    pub(crate) fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Waits for the end of the pipe; all lines.
    pub(crate) fn wait_for_end(&mut self) -> &[String] {
        loop {
            match self.coming.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => return &self.seen,
                Err(RecvTimeoutError::Timeout) => panic!("it goes on after {:#?}", self.seen),
            }
        }
    }
}

impl Program {
    /// With both pipes read.
    pub(crate) fn start(mut command: Command) -> Program {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Program::adopt(command)
    }

    /// With the pipes that the command says; one that is not ours has no lines.
    pub(crate) fn adopt(mut command: Command) -> Program {
        let mut child = command.spawn().expect("the program starts");
        // The command keeps its end of a pipe open.
        drop(command);
        let out = child.stdout.take().map_or_else(Lines::none, Lines::of);
        let err = child.stderr.take().map_or_else(Lines::none, Lines::of);
        Program { child, out, err }
    }

    /// Resident memory now.
    pub(crate) fn resident_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
        number.and_then(|number| number.trim().parse().ok()).expect("a number")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it can be signalled");
    }

    pub(crate) fn pid(&self) -> Pid {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        id.expect("a process id")
    }

    /// Waits for the end of both pipes, then of the process; its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.out.wait_for_end();
        self.err.wait_for_end();
        self.child.wait().expect("it is our child").code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects, with every wait bounded.
pub(crate) fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&addr, PATIENCE).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
    stream
}

/// Sends `request` and reads to the end of the connection.
pub(crate) fn ask(addr: SocketAddr, request: &str) -> String {
    let mut stream = connect(addr);
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

pub(crate) fn get(addr: SocketAddr, path: &str) -> String {
    ask(addr, &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
}

/// A chat call as a client writes it.
pub(crate) fn chat(key: &str, model: &str) -> String {
    let body = format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"hi"}}]}}"#);
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}
