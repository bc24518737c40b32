//! Plays a plan: one world, in which the gateway lives, dies and lives again, while clients and
//! providers go on.

use crate::client;
use crate::dice::Dice;
use crate::judge;
use crate::ledger::{self, Ledger, Left};
use crate::notes::{self, Notes};
use crate::plan::{Deed, End, Life, Plan};
use crate::process::{Process, SimIo};
use crate::upstream;
use crate::world::{HELD_BYTES, Reach};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use store::disk::simulated::Faults;
use store::record::Settled;
use tollgate::exchange::keys::KeyTable;
use tollgate::exchange::time::UnixMs;
use tollgate::io::Io;
use tollgate::io::runtime::Choice;
use tollgate::io::script::{ScriptIo, ScriptWorld};
use tollgate::io::tls::TlsIo;
use tollgate::observe::counters::Counters;
use tollgate::server::thread::{self, Setup};
use tollgate::shard::Shard;
use tollgate::shard::mailbox::{Letter, Mailbox};
use tollgate::shard::told::Told;

/// Records a life may settle.
const RECORDS_MAX: usize = 16_384;

/// Virtual time a run may take: traffic, its slowest end, every drain.
const RUN_MAX: Duration = Duration::from_secs(600);

/// Between two looks at whether a life is over.
const LOOK: Duration = Duration::from_millis(3);

/// Between two looks at the words of limits and budgets: no divisor of anything.
const SAMPLE: Duration = Duration::from_millis(97);

/// Where a shard listens.
pub(crate) fn gateway_at(shard: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 4_180 + shard as u16))
}

/// What a run left.
pub(crate) struct Played {
    pub(crate) plan: Rc<Plan>,
    pub(crate) notes: Rc<Notes>,
    /// Every record of the log.
    pub(crate) records: Vec<Settled>,
    /// What kills left in slabs.
    pub(crate) left: Vec<Left>,
}

/// Plays a plan to its end.
pub(crate) fn play(plan: Plan) -> Played {
    let world = Rc::new(ScriptWorld::new(plan.seed));
    world.set_order(plan.order);
    world.set_wall(UnixMs(plan.world.wall));
    world.set_link(plan.link.clone());
    let notes = Notes::new(world.io(), plan.calls.len(), plan.world.keys.len());
    let (plan, notes) = (Rc::new(plan), Rc::new(notes));
    let ledger = Rc::new(RefCell::new(Ledger::open(plan.seed)));
    for (number, provider) in plan.world.providers.iter().enumerate() {
        match provider.reach {
            Reach::Refused => {}
            Reach::BlackHole => world.set_black_hole(provider.at),
            Reach::Open => {
                let listener = world.serve(provider.at).expect("a free address");
                let (io, plan, notes) = (world.io(), plan.clone(), notes.clone());
                world.spawn(upstream::serve(listener, io, plan, notes, number));
            }
        }
    }
    let clients = Rc::new(Cell::new(plan.clients.len()));
    for which in 0..plan.clients.len() {
        let net = Rc::downgrade(&world);
        let play = client::play(net, plan.clone(), notes.clone(), which);
        let left = clients.clone();
        world.spawn(async move {
            play.await;
            left.set(left.get() - 1);
        });
    }
    let node = Rc::new(Node {
        io: world.io(),
        world: Rc::downgrade(&world),
        plan: plan.clone(),
        notes: notes.clone(),
        ledger: ledger.clone(),
        keys: RefCell::default(),
        clients,
        process: RefCell::new(Process::new(None)),
        revoked: RefCell::default(),
    });
    for (at, deed) in plan.deeds.clone() {
        let node = node.clone();
        world.spawn(async move {
            node.io.sleep(at).await;
            node.deed(deed);
        });
    }
    let mut left = Vec::new();
    let lived = world.run_within(RUN_MAX, async {
        for (number, life) in plan.lives.iter().enumerate() {
            left.extend(node.live(number, *life).await);
            node.io.sleep(life.down).await;
        }
    });
    if let Err(stuck) = lived {
        notes.fault(format!("{stuck}"));
    }
    let records = ledger.borrow().records();
    let records = records.unwrap_or_else(|why| {
        notes.fault(why);
        Vec::new()
    });
    node.process.borrow().bury();
    Played { plan, notes, records, left }
}

/// Everything of a run that deeds reach.
struct Node {
    io: ScriptIo,
    /// Its tasks hold this, and it holds them.
    world: Weak<ScriptWorld>,
    plan: Rc<Plan>,
    notes: Rc<Notes>,
    ledger: Rc<RefCell<Ledger>>,
    /// Of the life at hand.
    keys: RefCell<Arc<KeyTable>>,
    /// Clients that are not done.
    clients: Rc<Cell<usize>>,
    process: RefCell<Rc<Process>>,
    /// Keys that do not come back.
    revoked: RefCell<BTreeSet<usize>>,
}

/// A shard, and what is read from it afterwards.
struct Kit {
    shard: Rc<Shard<TlsIo<SimIo>>>,
    mailbox: Mailbox,
    counters: Arc<Counters>,
    records: Arc<Told>,
    served: Rc<Cell<bool>>,
}

// === impl Node ===

impl Node {
    /// One life; what a kill left in its slabs.
    async fn live(&self, number: usize, life: Life) -> Vec<Left> {
        let start = number as u32 + 1;
        self.notes.life.set(number);
        self.notes.lives.borrow_mut().push(notes::Life { start, ..notes::Life::default() });
        let kits = self.begin(start, life);
        let process = self.process.borrow().clone();
        self.run(&process, &kits, life).await;
        if !process.is_dead() {
            process.end();
        }
        let told = kits.iter().flat_map(|kit| std::iter::from_fn(|| kit.records.pop())).collect();
        let killed = {
            let mut lives = self.notes.lives.borrow_mut();
            let noted = &mut lives[number];
            noted.to_ns = self.notes.now_ns();
            noted.operations = process.operations();
            noted.told = told;
            for kit in &kits {
                noted.records += kit.counters.records.get();
                noted.refusals_unrecorded += kit.counters.refusals_unrecorded.get();
            }
            noted.killed.is_some()
        };
        let wall = self.io.now().wall.0;
        if killed {
            process.bury();
            drop(kits);
            let mut ledger = self.ledger.borrow_mut();
            return ledger.recover(wall, life.crash).unwrap_or_else(|why| {
                self.notes.fault(format!("life {number}: {why}"));
                Vec::new()
            });
        }
        judge::at_rest(&self.plan, &self.notes, &self.keys.borrow(), self.io.now().wall);
        self.check_shards(kits, life.end == End::Last);
        if let Err(why) = self.ledger.borrow_mut().finish(start, wall) {
            self.notes.fault(format!("life {number}: {why}"));
        }
        Vec::new()
    }

    fn begin(&self, start: u32, life: Life) -> Vec<Kit> {
        let operations = match life.end {
            End::Kill { operations, .. } => Some(operations),
            End::Drain(_) | End::Last => None,
        };
        let process = Process::new(operations);
        *self.process.borrow_mut() = process.clone();
        let now = self.io.now();
        let ledger = self.ledger.borrow();
        let keys = self.plan.world.table(now.wall, |budget, window| ledger.spent(budget, window));
        drop(ledger);
        let keys = Arc::new(keys);
        *self.keys.borrow_mut() = keys.clone();
        for (key, turns) in self.notes.standing.borrow().iter().enumerate() {
            if turns.len() % 2 == 1 {
                self.bundle(key).disable();
            }
        }
        let shards = self.plan.shards;
        let slabs = self.ledger.borrow_mut().slabs(start, shards as u16);
        let gauges = self.ledger.borrow().gauges.clone();
        let will = self.ledger.borrow().will(start);
        let notes = self.notes.clone();
        process.at_death(move |what| {
            will();
            notes.trace(|| format!("KILLED at {what}"));
            let life = notes.life.get();
            notes.lives.borrow_mut()[life].killed = Some(what);
        });
        let io = SimIo::new(self.io.clone(), process.clone());
        // Compiled for each start: breakers and turns begin anew with it.
        let snapshot = self.plan.world.snapshot();
        let kits = slabs.into_iter().enumerate().map(|(number, slab)| {
            let kit = (Mailbox::default(), Arc::<Counters>::default());
            let records = Arc::new(Told::all(RECORDS_MAX));
            let setup = Setup {
                number: number as u8,
                node: *b"sim",
                start: start as u16,
                driver: Choice::Auto,
                core: None,
                snapshot: snapshot.clone(),
                identity: None,
                addresses: Arc::default(),
                keys: keys.clone(),
                mailbox: kit.0.clone(),
                counters: kit.1.clone(),
                slab: Some(slab),
                ledger: gauges.clone(),
                shards,
                records: Some(records.clone()),
            };
            let at = gateway_at(number);
            let listener = io.listener(self.io.listen(at).expect("the address is free again"));
            let shard = thread::shard(io.clone(), setup);
            let served = Rc::new(Cell::new(false));
            let (serving, done, mailbox) = (shard.clone(), served.clone(), kit.0.clone());
            io.spawn(async move {
                thread::serve(serving, listener, mailbox).await;
                done.set(true);
            });
            let (mailbox, counters) = kit;
            Kit { shard, mailbox, counters, records, served }
        });
        let kits = kits.collect();
        let collecting = ledger::collect(self.ledger.clone(), process.clone(), self.io.clone());
        self.io.spawn(collecting);
        self.notes.trace(|| format!("start {start}"));
        kits
    }

    /// Until the life is over.
    async fn run(&self, process: &Process, kits: &[Kit], life: Life) {
        let begun = self.notes.now_ns();
        let mut sampled = begun;
        let mut drained = false;
        loop {
            self.io.sleep(LOOK).await;
            let now = self.notes.now_ns();
            let age = Duration::from_nanos(now - begun);
            if process.is_dead() || kits.iter().all(|kit| kit.served.get()) {
                return;
            }
            if now - sampled >= SAMPLE.as_nanos() as u64 {
                sampled = now;
                let wall = self.io.now().wall;
                self.keys.borrow().each(|bundle| {
                    bundle.limits.budgets.iter().for_each(|budget| budget.prepare(wall));
                });
                judge::in_flight(&self.notes, &self.keys.borrow());
            }
            let drain = match life.end {
                End::Kill { latest, .. } if age >= latest => {
                    process.die("idle");
                    return;
                }
                End::Kill { .. } => false,
                End::Drain(at) => age >= at,
                End::Last => self.clients.get() == 0,
            };
            if drain && !drained {
                drained = true;
                self.notes.trace(|| "drain".to_owned());
                let number = self.notes.life.get();
                self.notes.lives.borrow_mut()[number].drained_ns = Some(now);
                for kit in kits {
                    assert!(kit.mailbox.send(Letter::Drain).is_ok(), "the mailbox takes a letter");
                }
            }
        }
    }

    /// What a shard must be like once its runtime has ended.
    fn check_shards(&self, kits: Vec<Kit>, alone: bool) {
        let fault = |what: String| self.notes.fault(what);
        // One thread has one home for buffers, however many shards: their sum counts.
        let lent: u64 = kits.iter().fold(0, |sum, kit| sum.wrapping_add(kit.shard.buffers.lent()));
        if lent != 0 {
            fault(format!("{lent} buffers lent at the end"));
        }
        for Kit { shard, counters, .. } in &kits {
            let left = shard.allowance.left();
            if left != HELD_BYTES {
                fault(format!("{left} of {HELD_BYTES} B left of the allowance at the end"));
            }
            let gauges = [
                ("busy", shard.busy.get() as u64),
                ("pooled", shard.pool.len() as u64),
                // Under traffic some outlive the drain by a moment.
                ("connections open", if alone { counters.connections_open.get() } else { 0 }),
                ("panics", counters.panics.get()),
                ("records lost", counters.records_lost.get()),
            ];
            for (name, value) in gauges.into_iter().filter(|(_, value)| *value != 0) {
                fault(format!("{name}: {value} at the end"));
            }
        }
    }

    fn bundle(&self, key: usize) -> Arc<tollgate::exchange::bundle::Bundle> {
        let digest = self.plan.world.keys[key].digest();
        self.keys.borrow().find(&digest).expect("every key is in the table")
    }

    fn deed(&self, deed: Deed) {
        self.notes.trace(|| format!("{deed:?}"));
        let now_ns = self.notes.now_ns();
        match deed {
            Deed::Revoke(key) | Deed::Disable(key) => {
                let standing = &mut self.notes.standing.borrow_mut()[key];
                if standing.len().is_multiple_of(2) {
                    standing.push(now_ns);
                }
                match deed {
                    Deed::Revoke(_) => {
                        self.bundle(key).revoke();
                        self.revoked.borrow_mut().insert(key);
                    }
                    _ => self.bundle(key).disable(),
                }
            }
            Deed::Enable(key) => {
                let standing = &mut self.notes.standing.borrow_mut()[key];
                if standing.len() % 2 == 1 && !self.revoked.borrow().contains(&key) {
                    standing.push(now_ns);
                    self.bundle(key).enable();
                }
            }
            Deed::Stall(span) => {
                self.ledger.borrow_mut().stalled_until_ns = now_ns + span.as_nanos() as u64;
            }
            Deed::DiskFault(at) => {
                let mut dice = Dice::new(at);
                let faults = Faults {
                    write_fails_at: at,
                    sync_fails_at: at + dice.below(2),
                    short_write_at: at,
                };
                self.ledger.borrow().arm(faults);
            }
            Deed::FailAccepts(count) => {
                let at = gateway_at(0);
                let world = self.world.upgrade();
                // Nobody may listen there just now.
                let _ = world.map(|world| world.fail_accepts(at, count, libc::EMFILE));
            }
        }
    }
}
