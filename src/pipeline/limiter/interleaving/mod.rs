//! Every order in which calls can ask, be looked at, be cancelled, be dropped and give back, against a model.
//!
//! The futures are the real ones of [`ToolLimiter::acquire`]. They are polled by hand, one at a time, so that a schedule
//! is a list of choices: all of them are tried for few calls, and seeded random ones for many. After each step the real
//! calls must be where the model has them, whoever can go on must have been woken, and nobody holds what another one
//! holds; after the last step everything is free again. Nothing sleeps and there are no threads.

mod model;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use tokio::sync::oneshot;

use super::files::FileLocks;
use super::names::{Answer, FileName, Identity, Names};
use super::{Denied, FileUse, Leases, Limits, ToolLimiter};
use crate::contract::ToolKind;
use crate::host::{CancelReason, CancelToken};
use model::{Model, Station, Verdict};

/// What one call asks for: a kind, and a path that it may share.
#[derive(Debug, Clone, Copy)]
struct CallPlan {
    kind: usize,
    file: Option<(usize, bool)>,
}

/// Limits, files and calls of a schedule.
#[derive(Debug, Clone)]
struct Plan {
    slots: [usize; 3],
    queue: usize,
    /// The file each path stands for; two paths may stand for one.
    identity: Vec<Option<usize>>,
    /// Whether looking up takes until the schedule says so.
    slow_lookups: bool,
    /// Whether a writer that ends may leave another file under its path.
    replaces: bool,
    /// Whether calls may ask in any order, and be looked at without a reason.
    any_order: bool,
    /// Most cancellations, drops and looks without a reason in a schedule.
    disturbances: usize,
    calls: Vec<CallPlan>,
}

impl Plan {
    /// The number of files there are at first.
    fn files(&self) -> usize {
        self.identity.iter().flatten().max().map_or(0, |last| last + 1)
    }
}

const KINDS: [ToolKind; 3] = [ToolKind::ReadOnly, ToolKind::Write, ToolKind::Execute];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Ask(usize),
    Look(usize),
    LookForNothing(usize),
    Answer(usize),
    Cancel(usize),
    Drop(usize),
    GiveBack(usize),
    ReplaceAndGiveBack(usize),
}

/// The file system of a schedule: lookups end when it says so, if they are slow.
struct Desk {
    slow: bool,
    asking: AtomicUsize,
    identity: Mutex<Vec<Option<usize>>>,
    open: Mutex<Vec<Option<oneshot::Sender<()>>>>,
}

impl Desk {
    fn answer<T: Send + 'static>(self: &Arc<Self>, value: impl FnOnce(&Self) -> T + Send + 'static) -> Answer<T> {
        if !self.slow {
            return Answer::Now(value(self));
        }
        let (sender, receiver) = oneshot::channel();
        self.open.lock().unwrap()[self.asking.load(Ordering::Relaxed)] = Some(sender);
        let desk = Arc::clone(self);
        Answer::Later(Box::pin(async move {
            receiver.await.expect("a lookup is answered or dropped");
            value(&desk)
        }))
    }
}

impl Names for Arc<Desk> {
    fn name(&self, path: &std::path::Path) -> Answer<FileName> {
        let name = FileName::as_written(path);
        self.answer(move |_| name)
    }

    fn identity(&self, name: &FileName) -> Answer<Option<Identity>> {
        let path: usize = name.key().to_str().unwrap()[1..].parse().unwrap();
        self.answer(move |desk| desk.identity.lock().unwrap()[path].map(|file| (0, file as u64)))
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Asking = Pin<Box<dyn Future<Output = Result<Leases, Denied>>>>;

/// A real call.
struct Call {
    asking: Option<Asking>,
    leases: Option<Leases>,
    cancel: CancelToken,
    woken: Arc<Woken>,
}

/// The real limiter beside its model.
struct World {
    plan: Plan,
    limiter: Arc<ToolLimiter>,
    desk: Arc<Desk>,
    calls: Vec<Call>,
    model: Model,
    disturbances: usize,
    fresh: usize,
}

impl World {
    fn new(plan: &Plan) -> Self {
        let [readonly, write, execute] = plan.slots;
        let desk = Arc::new(Desk {
            slow: plan.slow_lookups,
            asking: AtomicUsize::new(0),
            identity: Mutex::new(plan.identity.clone()),
            open: Mutex::new((0..plan.calls.len()).map(|_| None).collect()),
        });
        let limits = Limits { readonly, write, execute, queue: plan.queue };
        let files = FileLocks::with_names(Arc::new(Arc::clone(&desk)));
        let call =
            |_: &CallPlan| Call { asking: None, leases: None, cancel: CancelToken::new(), woken: Arc::default() };
        Self {
            limiter: Arc::new(ToolLimiter::with_files(limits, files)),
            desk,
            calls: plan.calls.iter().map(call).collect(),
            model: Model::new(plan),
            disturbances: plan.disturbances,
            fresh: plan.files(),
            plan: plan.clone(),
        }
    }

    /// Everything that could happen next.
    fn steps(&self, steps: &mut Vec<Step>) {
        steps.clear();
        let mut first = true;
        for (at, call) in self.calls.iter().enumerate() {
            let station = self.model.station(at);
            match station {
                Station::NotAsked => {
                    if first || self.plan.any_order {
                        steps.push(Step::Ask(at));
                    }
                    first = false;
                    if self.plan.any_order && self.disturbances > 0 && !self.model.is_cancelled(at) {
                        steps.push(Step::Cancel(at));
                    }
                    continue;
                }
                Station::Holds => {
                    steps.push(Step::GiveBack(at));
                    if self.plan.replaces && self.plan.calls[at].file.is_some_and(|(_, shared)| !shared) {
                        steps.push(Step::ReplaceAndGiveBack(at));
                    }
                    continue;
                }
                Station::Left => continue,
                _ => {}
            }
            if call.woken.0.load(Ordering::Relaxed) {
                steps.push(Step::Look(at));
            } else if self.plan.any_order && self.disturbances > 0 {
                steps.push(Step::LookForNothing(at));
            }
            if self.model.looks_up(at) {
                steps.push(Step::Answer(at));
            }
            if self.disturbances > 0 {
                if !self.model.is_cancelled(at) {
                    steps.push(Step::Cancel(at));
                }
                steps.push(Step::Drop(at));
            }
        }
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::Ask(at) => {
                let CallPlan { kind, file } = self.plan.calls[at];
                let (limiter, cancel) = (Arc::clone(&self.limiter), self.calls[at].cancel.clone());
                let path = file.map(|(path, shared)| (PathBuf::from(format!("/{path}")), shared));
                self.calls[at].asking = Some(Box::pin(async move {
                    let file = path.as_ref().map(|(path, shared)| FileUse { path, shared: *shared });
                    limiter.acquire(KINDS[kind], file, &cancel).await
                }));
                self.look(at);
            }
            Step::Look(at) => self.look(at),
            Step::LookForNothing(at) => {
                self.disturbances -= 1;
                self.look(at);
            }
            Step::Answer(at) => {
                self.model.answer(at);
                let sender = self.desk.open.lock().unwrap()[at].take().expect("a lookup is open");
                sender.send(()).expect("somebody waits for the lookup");
            }
            Step::Cancel(at) => {
                self.disturbances -= 1;
                self.model.cancel(at);
                self.calls[at].cancel.cancel(CancelReason::Abort);
            }
            Step::Drop(at) => {
                self.disturbances -= 1;
                self.model.leave(at);
                self.calls[at].asking = None;
            }
            Step::GiveBack(at) | Step::ReplaceAndGiveBack(at) => {
                if let (Step::ReplaceAndGiveBack(_), Some((path, _))) = (step, self.plan.calls[at].file) {
                    self.model.identity[path] = Some(self.fresh);
                    self.desk.identity.lock().unwrap()[path] = Some(self.fresh);
                    self.fresh += 1;
                }
                self.model.leave(at);
                self.calls[at].leases = None;
            }
        }
    }

    fn look(&mut self, at: usize) {
        self.desk.asking.store(at, Ordering::Relaxed);
        let call = &mut self.calls[at];
        call.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&call.woken));
        let asking = call.asking.as_mut().expect("the call asks");
        let real = match asking.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => None,
            Poll::Ready(outcome) => {
                call.asking = None;
                Some(match outcome {
                    Ok(leases) => {
                        call.leases = Some(leases);
                        Verdict::Granted
                    }
                    Err(Denied::Cancelled) => Verdict::Cancelled,
                    Err(Denied::QueueFull(_)) => Verdict::QueueFull,
                    Err(Denied::FileBusy) => panic!("time does not pass here"),
                })
            }
        };
        assert_eq!(real, self.model.go_on(at), "call {at}: the limiter, then the model");
    }

    /// What must hold between any two steps.
    fn check(&self) {
        for (at, call) in self.calls.iter().enumerate() {
            let lost = call.asking.is_some() && self.model.can_go_on(at) && !call.woken.0.load(Ordering::Relaxed);
            assert!(!lost, "call {at} could go on from {:?} and nobody woke it", self.model.station(at));
        }
        // Counted without the model, from what was really handed out.
        let holders = || self.plan.calls.iter().zip(&self.calls).filter(|(_, call)| call.leases.is_some());
        for (kind, slots) in self.plan.slots.iter().enumerate() {
            let running = holders().filter(|(plan, _)| plan.kind == kind).count();
            assert!(running <= *slots, "{running} calls run in {slots} slots");
        }
        for path in 0..self.plan.identity.len() {
            let shared = |wanted| holders().filter(|(plan, _)| plan.file == Some((path, wanted))).count();
            let (readers, writers) = (shared(true), shared(false));
            assert!(writers == 0 || (writers == 1 && readers == 0), "{writers} writers and {readers} readers together");
        }
    }

    /// What must hold when all calls have left.
    fn check_end(&self) {
        let limits = self.plan.slots;
        let buckets = [&self.limiter.readonly, &self.limiter.write, &self.limiter.execute];
        for (bucket, slots) in buckets.into_iter().zip(limits) {
            assert_eq!(bucket.slots.available_permits(), slots, "slots are lost");
            assert_eq!(bucket.waiting.load(Ordering::Relaxed), 0, "somebody still counts as waiting");
        }
        assert_eq!(self.limiter.files.in_use(), 0, "a file is still locked");
    }
}

/// Plays one schedule. `choose` picks one of so many steps.
fn play(plan: &Plan, mut choose: impl FnMut(usize) -> usize, history: &mut Vec<Step>) {
    let mut world = World::new(plan);
    let mut steps = Vec::new();
    history.clear();
    loop {
        world.steps(&mut steps);
        if steps.is_empty() {
            break;
        }
        let step = steps[choose(steps.len())];
        history.push(step);
        world.perform(step);
        world.check();
    }
    world.check_end();
}

/// Says which schedule was played when a test fails.
struct Account<'a>(&'a Plan, Vec<Step>);

impl Drop for Account<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?}\n{:?}", self.0, self.1);
        }
    }
}

/// All schedules of a plan; their number.
fn play_all(plan: &Plan) -> usize {
    let mut account = Account(plan, Vec::new());
    // The choices of this schedule, each with the number of its alternatives.
    let mut choices: Vec<(usize, usize)> = Vec::new();
    let mut count = 0;
    loop {
        let mut at = 0;
        let choose = |among: usize| {
            if at == choices.len() {
                choices.push((0, among));
            }
            at += 1;
            choices[at - 1].0
        };
        play(plan, choose, &mut account.1);
        count += 1;
        while let Some((choice, among)) = choices.pop() {
            if choice + 1 < among {
                choices.push((choice + 1, among));
                break;
            }
        }
        if choices.is_empty() {
            return count;
        }
    }
}

/// A random plan with many calls.
fn random_plan(random: &mut fastrand::Rng) -> Plan {
    let paths = random.usize(1..4);
    let identity = (0..paths).map(|_| random.bool().then(|| random.usize(0..2))).collect();
    let call = |random: &mut fastrand::Rng| CallPlan {
        kind: random.usize(0..3),
        file: (random.u8(0..4) > 0).then(|| (random.usize(0..paths), random.bool())),
    };
    Plan {
        slots: [random.usize(1..4), random.usize(1..3), random.usize(1..3)],
        queue: random.usize(1..8),
        identity,
        slow_lookups: random.bool(),
        replaces: random.bool(),
        any_order: true,
        disturbances: random.usize(0..9),
        calls: (0..random.usize(4..12)).map(|_| call(random)).collect(),
    }
}

/// Small plans: each meets one kind of trouble.
fn small_plans() -> Vec<(&'static str, Plan)> {
    let slot = |kind| CallPlan { kind, file: None };
    let read = |path| CallPlan { kind: 0, file: Some((path, true)) };
    let write = |path| CallPlan { kind: 1, file: Some((path, false)) };
    let plan = |calls: Vec<CallPlan>| Plan {
        slots: [3, 3, 1],
        queue: 10,
        identity: vec![None, None],
        slow_lookups: false,
        replaces: false,
        any_order: false,
        disturbances: 2,
        calls,
    };
    vec![
        ("one slot", plan(vec![slot(2); 4])),
        ("two slots", Plan { slots: [3, 3, 2], ..plan(vec![slot(2); 4]) }),
        ("a full queue", Plan { queue: 1, ..plan(vec![slot(2); 4]) }),
        ("any order", Plan { any_order: true, ..plan(vec![slot(2); 3]) }),
        ("much is cancelled", Plan { disturbances: 4, ..plan(vec![slot(2); 4]) }),
        ("writers", plan(vec![write(0); 4])),
        ("a writer between readers", plan(vec![read(0), write(0), read(0), read(0)])),
        ("readers before writers", plan(vec![read(0), read(0), write(0), write(0)])),
        ("two slots and one file", Plan { slots: [3, 2, 1], disturbances: 3, ..plan(vec![write(0); 4]) }),
        (
            "two names of a file",
            Plan { identity: vec![Some(0), Some(0)], ..plan(vec![write(0), write(1), read(0), read(1)]) },
        ),
        ("slow lookups", Plan { slow_lookups: true, ..plan(vec![write(0), write(0)]) }),
        ("slow lookups of two files", Plan { slow_lookups: true, ..plan(vec![write(0), write(1)]) }),
        (
            "slow lookups of existing files",
            Plan { slow_lookups: true, disturbances: 1, identity: vec![Some(0); 2], ..plan(vec![write(0), read(1)]) },
        ),
        (
            "a file that is replaced",
            Plan {
                identity: vec![Some(0); 2],
                replaces: true,
                disturbances: 1,
                ..plan(vec![write(0), write(1), write(0), write(1)])
            },
        ),
    ]
}

const RANDOM_PLANS: u64 = 500;
const SCHEDULES_EACH: usize = 30;

#[test]
fn no_schedule_loses_a_slot_grants_one_twice_or_lets_anybody_overtake() {
    // Timers need a runtime to belong to; nobody drives it, so no time passes.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _context = runtime.enter();
    let mut exhaustive = 0;
    for (name, plan) in small_plans() {
        let count = play_all(&plan);
        println!("{name}: all {count} schedules");
        exhaustive += count;
    }
    let mut random = HashSet::new();
    for seed in 0..RANDOM_PLANS {
        let mut dice = fastrand::Rng::with_seed(seed);
        let plan = random_plan(&mut dice);
        let mut account = Account(&plan, Vec::new());
        for _ in 0..SCHEDULES_EACH {
            play(&plan, |among| dice.usize(0..among), &mut account.1);
            let mut hasher = DefaultHasher::new();
            (seed, &account.1).hash(&mut hasher);
            random.insert(hasher.finish());
        }
    }
    println!("{exhaustive} schedules of small plans and {} different random ones", random.len());
    assert!(exhaustive + random.len() >= 100_000);
}
