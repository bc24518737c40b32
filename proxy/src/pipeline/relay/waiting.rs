//! The wait for more of a stream: its deadline, the beats that tell the client of its call while
//! nothing comes, and the buffers that are given back meanwhile.

use super::beat;
use super::incoming::Came;
use super::stream::Streaming;
use crate::io::Io;
use crate::pipeline::client::{Client, Lost, Presence};
use crate::pipeline::held::Held;
use crate::pipeline::leaving;
use crate::pipeline::open::Call;
use std::time::Duration;

/// How long a read stays posted on a stream in which nothing happens: longer than the pauses of a
/// model that writes.
const LENT: Duration = Duration::from_secs(5);

/// How a wait for more of a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Bytes came, or the end.
    Some,
    /// The end came too early.
    Cut,
    /// Its time was over.
    Late,
    /// The client is gone.
    Left,
    /// The client takes nothing.
    Stalled,
}

impl<I: Io> Streaming<'_, I> {
    /// Waits for more of the answer, beating while the client hears nothing. `limit` takes the
    /// place of the deadline between two reads.
    pub(super) async fn wait(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
        held: &mut Held,
        limit: Option<Duration>,
    ) -> Wait {
        let shard = self.incoming.shard;
        let deadline = limit.unwrap_or(call.snapshot.deadlines.between_bytes);
        let begun = client.timer.tick();
        let between = leaving::ticks(deadline);
        let mut awake = limit.is_none();
        loop {
            let tick = client.timer.tick();
            let rest = leaving::span(between.saturating_sub(tick - begun));
            let beat = if limit.is_none() { beat::due_in(client, call) } else { rest };
            let soon = if awake { rest.min(beat).min(LENT) } else { rest.min(beat) };
            client.timer.arm(soon);
            let came = self.incoming.more(client, call).await;
            match came {
                Came::Some | Came::Cut => {
                    client.timer.disarm();
                    return if matches!(came, Came::Some) { Wait::Some } else { Wait::Cut };
                }
                Came::Client if client.presence == Presence::Gone => {
                    client.timer.disarm();
                    return Wait::Left;
                }
                Came::Client => {}
                Came::Fired if shard.cut.get() => return self.late(client, call).await,
                Came::Fired => {
                    let tick = client.timer.tick();
                    if tick - begun >= between {
                        return self.late(client, call).await;
                    }
                    if awake && tick - begun >= leaving::ticks(LENT) {
                        awake = false;
                        if let Some(came) = Box::pin(self.nap(client, call)).await {
                            return if matches!(came, Came::Some) { Wait::Some } else { Wait::Cut };
                        }
                    }
                    if beat::due_in(client, call).is_zero() {
                        match Box::pin(self.beat(client, call, held)).await {
                            Ok(()) => {}
                            Err(Lost::Gone) => return Wait::Left,
                            Err(Lost::Stalled) => return Wait::Stalled,
                        }
                    }
                }
            }
        }
    }

    /// A stream that is silent holds no buffers.
    async fn nap(&mut self, client: &mut Client<I::Stream>, call: &Call<'_>) -> Option<Came> {
        // Toward an old client a broken stream ends with a reset, which a watch would hold up.
        if !call.origin.is_10 {
            client.nap(&self.incoming.shard.buffers).await;
        }
        self.incoming.nap(client).await
    }

    async fn late(&mut self, client: &Client<I::Stream>, call: &mut Call<'_>) -> Wait {
        self.incoming.cut(client, call).await;
        Wait::Late
    }

    /// Tells the client that its call is alive, if that can be said here.
    async fn beat(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
        held: &Held,
    ) -> Result<(), Lost> {
        // Nothing can be said here: the next chance is a whole interval away.
        if !self.flow.is_plain() || !self.flow.is_between_events() {
            client.spoke = client.timer.tick();
            return Ok(());
        }
        self.flow.no_mark();
        beat::send(self.incoming.shard, client, call, held).await
    }
}
