//! Runs tasks on one thread, in an order that depends on the seed alone.
//!
//! First in, first out by default; [`Order::Seeded`] picks among the ready ones by chance. It
//! knows no time: when nothing is ready the caller moves the clock.
//!
//! `std::task::Wake` demands `Arc`, and a waker must be `Sync`; so a bell is an atomic flag and
//! the sending half of a channel, and nothing is ever contended.

use super::seed::Seed;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::task::{Context, Wake, Waker};

/// Which of the ready tasks runs next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The one that has been ready longest.
    #[default]
    Fifo,
    /// Any, by the world's seed: finds what relies on the usual order.
    Seeded,
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// A place in the slab and the how-manieth tenant of it: a late ring for a former tenant is not
/// answered by the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TaskId {
    place: usize,
    tenant: u64,
}

/// The place of the future that [`Executor::root`] names; no slab grows to it.
const ROOT_PLACE: usize = usize::MAX;

struct Bell {
    id: TaskId,
    rung: AtomicBool,
    ready: Sender<TaskId>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            // Fails once the executor is gone, and then there is nobody to wake.
            let _ = self.ready.send(self.id);
        }
    }
}

struct Place {
    bell: Arc<Bell>,
    /// `None` while it runs.
    task: Option<Task>,
}

/// What to do next.
pub(super) enum Next {
    /// Poll the root.
    Root,
    /// A task was polled.
    Polled,
    /// Nothing is ready.
    Idle,
}

pub(super) struct Executor {
    places: RefCell<Vec<Option<Place>>>,
    free: RefCell<Vec<usize>>,
    tenants: Cell<u64>,
    bells: Sender<TaskId>,
    rung: Receiver<TaskId>,
    ready: RefCell<VecDeque<TaskId>>,
    order: Cell<Order>,
}

/// The future that a run is about, seen by the executor.
pub(super) struct Root {
    bell: Arc<Bell>,
}

impl Root {
    pub(super) fn waker(&self) -> Waker {
        self.bell.clone().into()
    }
}

// === impl Executor ===

impl Executor {
    pub(super) fn new() -> Executor {
        let (bells, rung) = mpsc::channel();
        Executor {
            places: RefCell::default(),
            free: RefCell::default(),
            tenants: Cell::new(0),
            bells,
            rung,
            ready: RefCell::default(),
            order: Cell::default(),
        }
    }

    pub(super) fn set_order(&self, order: Order) {
        self.order.set(order);
    }

    /// Tasks that have not ended.
    pub(super) fn live(&self) -> usize {
        self.places.borrow().len() - self.free.borrow().len()
    }

    pub(super) fn spawn(&self, task: Task) {
        let mut places = self.places.borrow_mut();
        let place = self.free.borrow_mut().pop().unwrap_or_else(|| {
            places.push(None);
            places.len() - 1
        });
        let bell = self.bell(place);
        bell.wake_by_ref();
        if let Some(slot) = places.get_mut(place) {
            *slot = Some(Place { bell, task: Some(task) });
        }
    }

    /// Announces the future of a run; it is ready at once.
    pub(super) fn root(&self) -> Root {
        let bell = self.bell(ROOT_PLACE);
        bell.wake_by_ref();
        Root { bell }
    }

    /// Polls one ready task, or says that it is the root's turn.
    pub(super) fn step(&self, root: &Root, seed: &Seed) -> Next {
        let Some(id) = self.take_ready(seed) else { return Next::Idle };
        if id.place == ROOT_PLACE {
            if id != root.bell.id {
                return Next::Polled; // a late ring of an earlier run
            }
            root.bell.rung.store(false, Ordering::Release);
            return Next::Root;
        }
        self.poll(id);
        Next::Polled
    }

    /// Drops every task. Their destructors may wake others and drop streams.
    pub(super) fn clear(&self) {
        let places = std::mem::take(&mut *self.places.borrow_mut());
        self.free.borrow_mut().clear();
        drop(places);
    }

    fn bell(&self, place: usize) -> Arc<Bell> {
        self.tenants.set(self.tenants.get() + 1);
        let id = TaskId { place, tenant: self.tenants.get() };
        Arc::new(Bell { id, rung: AtomicBool::new(false), ready: self.bells.clone() })
    }

    fn take_ready(&self, seed: &Seed) -> Option<TaskId> {
        let mut ready = self.ready.borrow_mut();
        ready.extend(self.rung.try_iter());
        match self.order.get() {
            Order::Fifo => ready.pop_front(),
            Order::Seeded => {
                let pick = seed.below(ready.len());
                ready.remove(pick)
            }
        }
    }

    fn poll(&self, id: TaskId) {
        let Some((mut task, bell)) = self.take_task(id) else { return };
        bell.rung.store(false, Ordering::Release);
        let waker = Waker::from(bell);
        // No borrow is held here: the task may spawn, and its end may drop anything.
        let done = task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        let mut places = self.places.borrow_mut();
        let Some(slot) = places.get_mut(id.place) else { return };
        match slot {
            Some(_) if done => {
                *slot = None;
                self.free.borrow_mut().push(id.place);
            }
            Some(place) => place.task = Some(task),
            None => {}
        }
    }

    fn take_task(&self, id: TaskId) -> Option<(Task, Arc<Bell>)> {
        let mut places = self.places.borrow_mut();
        let place = places.get_mut(id.place)?.as_mut()?;
        if place.bell.id != id {
            return None;
        }
        Some((place.task.take()?, place.bell.clone()))
    }
}
