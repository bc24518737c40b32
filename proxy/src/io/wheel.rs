//! The coarse timer wheel of a shard: 512 slots of 100 ms.
//!
//! Re-arming a timer writes one word: the slot a timer lies in is corrected lazily when the hand
//! passes it. The timers of a slot are a list through the timers themselves, so that one which is
//! dropped leaves it at once: memory follows the timers there are, not those there were. A timer
//! that fires sets a flag and wakes the task that polled it; what the deadline means (shut a
//! socket down, give up waiting) is decided by that task.
//!
//! It deliberately reads no clock: [`Wheel::advance`] is told how much time has passed. A timer
//! never fires early; it fires at most two ticks late.

use super::TICK;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Slots of the wheel. 512 × 100 ms = 51 s a turn; longer deadlines pass the hand several times.
const SLOTS: usize = 512;

/// A deadline that is not armed.
const NEVER: u64 = u64::MAX;

/// One shard's wheel.
#[derive(Default)]
pub struct Wheel {
    now_tick: Cell<u64>,
    timers: RefCell<Timers>,
}

struct Timers {
    /// The first timer of each slot.
    slots: Vec<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
}

/// No timer: the end of a list.
const NONE: u32 = u32::MAX;

struct Entry {
    /// Tick at which it fires; `NEVER` when disarmed.
    deadline: u64,
    /// Tick of the slot in which it is filed; `NEVER` when in none.
    filed: u64,
    /// Its neighbours in the slot.
    before: u32,
    after: u32,
    fired: bool,
    /// Nobody minds if it fires early: see [`Wheel::fire_idle`].
    idle: bool,
    waker: Option<Waker>,
}

/// A timer filed on a wheel; leaves it when dropped.
pub struct Timer {
    wheel: Rc<Wheel>,
    index: u32,
}

// === impl Timers ===

impl Default for Timers {
    fn default() -> Timers {
        Timers { slots: vec![NONE; SLOTS], entries: Vec::new(), free: Vec::new() }
    }
}

impl Timers {
    /// Puts a timer that is in no slot into that of `tick`.
    fn file(&mut self, index: u32, tick: u64) {
        let first = &mut self.slots[(tick % SLOTS as u64) as usize];
        let after = std::mem::replace(first, index);
        if after != NONE {
            self.entries[after as usize].before = index;
        }
        let entry = &mut self.entries[index as usize];
        (entry.filed, entry.before, entry.after) = (tick, NONE, after);
    }

    /// Takes a timer out of its slot, if it is in one.
    fn unfile(&mut self, index: u32) {
        let Entry { filed, before, after, .. } = self.entries[index as usize];
        if filed == NEVER {
            return;
        }
        self.entries[index as usize].filed = NEVER;
        match before {
            NONE => self.slots[(filed % SLOTS as u64) as usize] = after,
            before => self.entries[before as usize].after = after,
        }
        if after != NONE {
            self.entries[after as usize].before = before;
        }
    }

    /// Handles every timer filed under `tick`.
    fn pass(&mut self, tick: u64) {
        let slot = (tick % SLOTS as u64) as usize;
        // Filing again never lands in the slot being passed, so this empties it.
        while self.slots[slot] != NONE {
            let index = self.slots[slot];
            self.unfile(index);
            self.judge(index, tick);
        }
    }

    /// Fires a timer that is in no slot, or files it again.
    fn judge(&mut self, index: u32, now: u64) {
        let entry = &mut self.entries[index as usize];
        if entry.deadline <= now {
            entry.fire();
        } else if entry.deadline != NEVER {
            let next = entry.deadline.min(now + SLOTS as u64 - 1);
            self.file(index, next);
        }
    }
}

// === impl Entry ===

impl Entry {
    fn fire(&mut self) {
        self.fired = true;
        self.deadline = NEVER;
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }
}

// === impl Wheel ===

impl Wheel {
    /// An empty wheel at tick 0.
    pub fn new() -> Rc<Wheel> {
        Rc::new(Wheel::default())
    }

    /// Moves the hand to `elapsed` since the start of the shard and fires what is due.
    pub fn advance(&self, elapsed: Duration) {
        let target = (elapsed.as_nanos() / TICK.as_nanos()) as u64;
        let mut tick = self.now_tick.get();
        let mut timers = self.timers.borrow_mut();
        if target > tick + SLOTS as u64 {
            // The thread was away for more than a turn: one turn visits every slot, and each
            // entry is judged against the time it is now.
            self.fire_all_due(&mut timers, target);
            tick = target;
        }
        while tick < target {
            tick += 1;
            timers.pass(tick);
        }
        self.now_tick.set(tick);
    }

    fn fire_all_due(&self, timers: &mut Timers, now: u64) {
        for index in 0..timers.entries.len() as u32 {
            timers.unfile(index);
            timers.judge(index, now);
        }
    }

    /// Fires every timer of an idle wait now: a shard that stops tells who only waits.
    pub fn fire_idle(&self) {
        for entry in &mut self.timers.borrow_mut().entries {
            if entry.idle && entry.deadline != NEVER {
                entry.fire();
            }
        }
    }

    /// Fires every armed timer: what still waits is to end now.
    pub fn fire_all(&self) {
        for entry in &mut self.timers.borrow_mut().entries {
            if entry.deadline != NEVER {
                entry.fire();
            }
        }
    }

    /// The tick the hand stands at.
    pub fn tick(&self) -> u64 {
        self.now_tick.get()
    }

    /// A new, unarmed timer.
    pub fn timer(self: &Rc<Wheel>) -> Timer {
        let entry = Entry {
            deadline: NEVER,
            filed: NEVER,
            before: NONE,
            after: NONE,
            fired: false,
            idle: false,
            waker: None,
        };
        let mut timers = self.timers.borrow_mut();
        let index = match timers.free.pop() {
            Some(index) => {
                timers.entries[index as usize] = entry;
                index
            }
            None => {
                timers.entries.push(entry);
                (timers.entries.len() - 1) as u32
            }
        };
        Timer { wheel: self.clone(), index }
    }
}

// === impl Timer ===

impl Timer {
    /// Fires once `after` has passed from now; replaces what was armed before.
    pub fn arm(&self, after: Duration) {
        let now = self.wheel.now_tick.get();
        // The hand stands up to one tick behind the clock: one more tick is never early.
        let ticks = after.as_nanos().div_ceil(TICK.as_nanos()) as u64 + 1;
        let deadline = now + ticks;
        let mut timers = self.wheel.timers.borrow_mut();
        let entry = &mut timers.entries[self.index as usize];
        entry.deadline = deadline;
        entry.fired = false;
        entry.idle = false;
        if entry.filed > deadline {
            let place = deadline.min(now + SLOTS as u64 - 1);
            timers.unfile(self.index);
            timers.file(self.index, place);
        }
    }

    /// The same for a wait that may end early: see [`Wheel::fire_idle`].
    pub fn arm_idle(&self, after: Duration) {
        self.arm(after);
        self.wheel.timers.borrow_mut().entries[self.index as usize].idle = true;
    }

    /// The tick that the hand of its wheel stands at.
    pub fn tick(&self) -> u64 {
        self.wheel.tick()
    }

    /// Fires no more until armed again.
    pub fn disarm(&self) {
        let mut timers = self.wheel.timers.borrow_mut();
        let entry = &mut timers.entries[self.index as usize];
        entry.deadline = NEVER;
        entry.fired = false;
    }

    /// Whether it has fired since it was last armed.
    pub fn fired(&self) -> bool {
        self.wheel.timers.borrow().entries[self.index as usize].fired
    }

    /// Ready once it has fired; otherwise the task is woken when it does.
    pub fn poll_fired(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut timers = self.wheel.timers.borrow_mut();
        let entry = &mut timers.entries[self.index as usize];
        if entry.fired {
            return Poll::Ready(());
        }
        match &mut entry.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => entry.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let mut timers = self.wheel.timers.borrow_mut();
        timers.unfile(self.index);
        let entry = &mut timers.entries[self.index as usize];
        entry.deadline = NEVER;
        entry.waker = None;
        timers.free.push(self.index);
    }
}

#[cfg(test)]
mod tests;
