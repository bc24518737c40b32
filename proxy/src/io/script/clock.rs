//! The virtual clock. Time stands still while any task can run and jumps to the next sleeper
//! when none can, so that a wait of ten minutes costs nothing and always takes ten minutes.
//!
//! The monotonic clock starts at 0. The wall clock starts at a fixed date and may be moved,
//! backwards too; moving it wakes nobody.

use super::World;
use crate::exchange::time::{MonoNs, Now, UnixMs};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Where the wall clock starts: 2026-01-15T12:00:00Z, in the middle of a day and of a month, so
/// that a calendar window ends only in tests that mean it to.
pub const WALL_START: UnixMs = UnixMs(1_768_478_400_000);

/// When a sleeper wakes, and which of those at the same instant first.
type Alarm = (u64, u64);

pub(super) struct Clock {
    mono_ns: Cell<u64>,
    /// Wall clock minus monotonic clock.
    wall_ahead_ms: Cell<u64>,
    sleepers: RefCell<BTreeMap<Alarm, Waker>>,
    sleeps: Cell<u64>,
}

impl Clock {
    pub(super) fn new() -> Clock {
        Clock {
            mono_ns: Cell::new(0),
            wall_ahead_ms: Cell::new(WALL_START.0),
            sleepers: RefCell::new(BTreeMap::new()),
            sleeps: Cell::new(0),
        }
    }

    pub(super) fn mono(&self) -> MonoNs {
        MonoNs(self.mono_ns.get())
    }

    pub(super) fn now(&self) -> Now {
        let wall = self.wall_ahead_ms.get().wrapping_add(self.mono_ns.get() / 1_000_000);
        Now { mono: self.mono(), wall: UnixMs(wall) }
    }

    /// Puts the wall clock to `wall`; the monotonic clock does not notice.
    pub(super) fn set_wall(&self, wall: UnixMs) {
        // Wrapping, so that a wall clock behind the monotonic one is possible as well.
        self.wall_ahead_ms.set(wall.0.wrapping_sub(self.mono_ns.get() / 1_000_000));
    }

    /// When the next sleeper wants to wake.
    pub(super) fn next_alarm(&self) -> Option<MonoNs> {
        self.sleepers.borrow().first_key_value().map(|((at, _), _)| MonoNs(*at))
    }

    /// Jumps to `to` and wakes everyone due by then, in the order they went to sleep.
    pub(super) fn advance(&self, to: MonoNs) {
        self.mono_ns.set(self.mono_ns.get().max(to.0));
        let mut sleepers = self.sleepers.borrow_mut();
        while let Some(entry) = sleepers.first_entry()
            && entry.key().0 <= to.0
        {
            entry.remove().wake();
        }
    }
}

/// Ready once its span of virtual time has passed.
pub struct Sleep {
    world: Rc<World>,
    until_ns: u64,
    alarm: Option<Alarm>,
}

impl Sleep {
    pub(super) fn new(world: Rc<World>, span: Duration) -> Sleep {
        let span_ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = world.clock.mono_ns.get().saturating_add(span_ns);
        Sleep { world, until_ns, alarm: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.get_mut();
        let clock = &sleep.world.clock;
        if clock.mono_ns.get() >= sleep.until_ns {
            return Poll::Ready(());
        }
        let alarm = *sleep.alarm.get_or_insert_with(|| {
            clock.sleeps.set(clock.sleeps.get() + 1);
            (sleep.until_ns, clock.sleeps.get())
        });
        clock.sleepers.borrow_mut().insert(alarm, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(alarm) = self.alarm {
            self.world.clock.sleepers.borrow_mut().remove(&alarm);
        }
    }
}
