//! What the limiter should do, written without it: lines in which everybody waits for their turn, and the stations a call
//! passes. Nothing here knows tokio, wakers or futures.

use std::collections::VecDeque;

use super::{CallPlan, Plan};

/// Where a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Station {
    NotAsked,
    WaitsForSlot,
    WaitsForTurn,
    WaitsForPath,
    Looks,
    WaitsForFile,
    LooksAgain,
    Holds,
    Left,
}

/// How asking ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Granted,
    Cancelled,
    QueueFull,
}

/// A line before something that has room for so much at once. Whoever does not fit waits, and everybody behind them.
#[derive(Debug, Clone, Default)]
struct Line {
    room: usize,
    inside: Vec<(usize, usize)>,
    waiting: VecDeque<(usize, usize)>,
}

impl Line {
    fn new(room: usize) -> Self {
        Self { room, ..Self::default() }
    }

    fn join(&mut self, call: usize, size: usize) {
        self.waiting.push_back((call, size));
        self.admit();
    }

    fn leave(&mut self, call: usize) {
        self.inside.retain(|(one, _)| *one != call);
        self.waiting.retain(|(one, _)| *one != call);
        self.admit();
    }

    fn admit(&mut self) {
        while let Some((call, size)) = self.waiting.front().copied() {
            let taken: usize = self.inside.iter().map(|(_, size)| size).sum();
            if taken + size > self.room {
                return;
            }
            self.waiting.pop_front();
            self.inside.push((call, size));
        }
    }

    fn fits_now(&self) -> bool {
        self.waiting.is_empty() && self.inside.iter().map(|(_, size)| size).sum::<usize>() < self.room
    }

    fn holds(&self, call: usize) -> bool {
        self.inside.iter().any(|(one, _)| *one == call)
    }
}

#[derive(Debug, Clone)]
struct Call {
    plan: CallPlan,
    station: Station,
    cancelled: bool,
    /// Whether the lookup under way has its answer.
    answered: bool,
    /// The file in whose line it stands, or which it holds.
    file: Option<usize>,
}

/// The whole limiter.
pub(super) struct Model {
    plan: Plan,
    slots: [Line; 3],
    turn: Line,
    paths: Vec<Line>,
    files: Vec<Line>,
    /// The file each path stands for.
    pub identity: Vec<Option<usize>>,
    calls: Vec<Call>,
}

/// Room of a file: more than all readers together, all of it for a writer.
const ALONE: usize = 1_000;

impl Model {
    pub(super) fn new(plan: &Plan) -> Self {
        let call = |plan: &CallPlan| Call {
            plan: *plan,
            station: Station::NotAsked,
            cancelled: false,
            answered: false,
            file: None,
        };
        Self {
            slots: plan.slots.map(Line::new),
            turn: Line::new(1),
            paths: vec![Line::new(ALONE); plan.identity.len()],
            // Each call may put one more file in the place of another.
            files: vec![Line::new(ALONE); plan.files() + plan.calls.len()],
            identity: plan.identity.clone(),
            calls: plan.calls.iter().map(call).collect(),
            plan: plan.clone(),
        }
    }

    pub(super) fn station(&self, call: usize) -> Station {
        self.calls[call].station
    }

    pub(super) fn cancel(&mut self, call: usize) {
        self.calls[call].cancelled = true;
    }

    pub(super) fn is_cancelled(&self, call: usize) -> bool {
        self.calls[call].cancelled
    }

    /// Whether a lookup of the call waits for its answer.
    pub(super) fn looks_up(&self, call: usize) -> bool {
        let Call { station, answered, .. } = &self.calls[call];
        !answered && matches!(station, Station::WaitsForTurn | Station::Looks | Station::LooksAgain)
    }

    pub(super) fn answer(&mut self, call: usize) {
        self.calls[call].answered = true;
    }

    /// Whether looking at the call again would get it anywhere, so that it has to be woken.
    pub(super) fn can_go_on(&self, call: usize) -> bool {
        let Call { plan, station, cancelled, answered, file } = &self.calls[call];
        *cancelled
            || match station {
                Station::WaitsForSlot => self.slots[plan.kind].holds(call),
                Station::WaitsForTurn => *answered && self.turn.holds(call),
                Station::WaitsForPath => plan.file.is_some_and(|(path, _)| self.paths[path].holds(call)),
                Station::Looks | Station::LooksAgain => *answered,
                Station::WaitsForFile => file.is_some_and(|file| self.files[file].holds(call)),
                Station::NotAsked | Station::Holds | Station::Left => false,
            }
    }

    /// The call goes as far as it can.
    pub(super) fn go_on(&mut self, call: usize) -> Option<Verdict> {
        let verdict = self.advance(call);
        if self.calls[call].cancelled {
            self.leave(call);
            return Some(Verdict::Cancelled);
        }
        match verdict {
            Some(Verdict::Granted) => self.calls[call].station = Station::Holds,
            Some(_) => self.leave(call),
            None => {}
        }
        verdict
    }

    /// The call gives back what it has and stands in no line any more.
    pub(super) fn leave(&mut self, call: usize) {
        self.calls[call].station = Station::Left;
        // In the order in which the real one lets go, since others are admitted meanwhile.
        for line in self.files.iter_mut().chain(&mut self.paths).chain([&mut self.turn]).chain(&mut self.slots) {
            line.leave(call);
        }
    }

    fn advance(&mut self, call: usize) -> Option<Verdict> {
        let CallPlan { kind, file } = self.calls[call].plan;
        let looks_at_once = !self.plan.slow_lookups;
        loop {
            let next = match (self.calls[call].station, file) {
                (Station::NotAsked, _) => {
                    let waiting = |one: &&Call| one.station == Station::WaitsForSlot && one.plan.kind == kind;
                    if !self.slots[kind].fits_now() && self.calls.iter().filter(waiting).count() >= self.plan.queue {
                        return Some(Verdict::QueueFull);
                    }
                    self.slots[kind].join(call, 1);
                    Station::WaitsForSlot
                }
                (Station::WaitsForSlot, _) if !self.slots[kind].holds(call) => return None,
                (Station::WaitsForSlot, None) => return Some(Verdict::Granted),
                (Station::WaitsForSlot, Some(_)) => {
                    self.calls[call].answered = looks_at_once;
                    self.turn.join(call, 1);
                    Station::WaitsForTurn
                }
                (Station::WaitsForTurn, Some((path, shared))) => {
                    if !self.calls[call].answered || !self.turn.holds(call) {
                        return None;
                    }
                    self.paths[path].join(call, if shared { 1 } else { ALONE });
                    self.turn.leave(call);
                    Station::WaitsForPath
                }
                (Station::WaitsForPath, Some((path, _))) => {
                    if !self.paths[path].holds(call) {
                        return None;
                    }
                    self.calls[call].answered = looks_at_once;
                    Station::Looks
                }
                (station @ (Station::Looks | Station::LooksAgain), Some((path, shared))) => {
                    if !self.calls[call].answered {
                        return None;
                    }
                    let now = self.identity[path];
                    let before = self.calls[call].file;
                    if now.is_none() || (station == Station::LooksAgain && now == before) {
                        if now.is_none()
                            && let Some(before) = before
                        {
                            self.files[before].leave(call);
                        }
                        return Some(Verdict::Granted);
                    }
                    if let Some(before) = before {
                        self.files[before].leave(call);
                    }
                    let now = now?;
                    self.files[now].join(call, if shared { 1 } else { ALONE });
                    self.calls[call].file = Some(now);
                    if self.files[now].holds(call) {
                        return Some(Verdict::Granted);
                    }
                    Station::WaitsForFile
                }
                (Station::WaitsForFile, _) => {
                    if !self.calls[call].file.is_some_and(|file| self.files[file].holds(call)) {
                        return None;
                    }
                    self.calls[call].answered = looks_at_once;
                    Station::LooksAgain
                }
                (station, _) => unreachable!("{station:?} goes nowhere"),
            };
            self.calls[call].station = next;
        }
    }
}
