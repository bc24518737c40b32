//! One end of a connection in a test's hands, whatever transport it is on. On sockets every
//! future is ready at once: the call itself blocks.

use std::time::Duration;

/// What can happen to a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Patience ran out.
    TimedOut,
    /// The connection was reset.
    Reset,
}

/// An end of a connection, and the board of things that have happened.
pub(crate) trait Wire {
    /// Speaks plainly from now on, where that is a choice.
    fn bare(&mut self) {}
    /// What comes before the first byte, if anything does.
    async fn begin(&mut self) {}
    /// Sends all of `bytes`.
    async fn send(&mut self, bytes: &[u8]) -> Result<(), Fault>;
    /// The same without patience: false if nobody takes them now.
    async fn offer(&mut self, bytes: &[u8]) -> bool;
    /// What is there, at least one byte; nothing at the end.
    async fn read(&mut self) -> Result<Vec<u8>, Fault>;
    /// Ends this direction.
    async fn fin(&mut self);
    /// Ends this direction without saying that this is the end, where that can be said.
    async fn cut(&mut self) {
        self.fin().await;
    }
    /// Says that a close is meant, where that can be said.
    async fn say_end(&mut self) {}
    /// Resets the connection.
    fn reset(&mut self);
    /// Lets everybody else do what they can, where that can be known.
    async fn settle(&mut self);
    /// Milliseconds since the beginning, where time is virtual.
    fn now_ms(&self) -> Option<u64>;
    /// Lets time pass.
    async fn pause(&mut self, span: Duration);
    /// Tells the shard to drain.
    fn drain(&mut self);
    /// Revokes every key.
    fn revoke(&mut self);
    /// Something has happened.
    fn signal(&mut self, what: &'static str);
    /// False if it never does.
    async fn wait(&mut self, what: &'static str) -> bool;
}
