//! How fast GPU operations progress beside the memory traffic of CPUs.
//!
//! Work left is counted in 2^-32 ns, and what is done in a nanosecond is rounded down: 2^32 / (1 + s (phi(X) - 1))
//! (formula 7 of `docs/reference/bandwidth-model.md`). When the traffic X changes, the next milestone of each operation
//! (an interrupt on the way, or its end) is put where it belongs now. Timers cannot be taken back: one that goes off at
//! another time than the milestone's is ignored.

use laxity_model::{Contention, Engine, Factor, GpuId, Instant, Nanos};
use laxity_plan::Plan;
use laxity_trace::{Event, Sink};

use crate::context::{Context, TimerKind};

/// The operations that engines are at.
pub(crate) struct Progress {
    contention: Contention,
    /// What the CPUs cause, in bytes a second.
    traffic: u64,
    running: Vec<[Option<Running>; Engine::ALL.len()]>,
}

/// An engine of a GPU.
type On = (GpuId, Engine);

struct Running {
    work: Nanos,
    /// Work left at `since`, in 2^-32 ns.
    left: u128,
    since: Instant,
    /// Work done in a nanosecond, in 2^-32 ns.
    rate: u64,
    memory: Factor,
    /// The interrupts that it raises, and the number of the next, counted from 1; the last one is raised at its end.
    interrupts: u32,
    next: u32,
    /// When the next milestone is reached.
    due: Instant,
}

/// Work of a nanosecond at full rate.
const FULL: u64 = 1 << 32;

impl Progress {
    /// `None` where no traffic slows anything down.
    pub fn new(plan: &Plan) -> Option<Progress> {
        let contention = &plan.memory.as_ref()?.contention;
        let running = || std::array::from_fn(|_| None);
        (!contention.is_flat()).then(|| Progress {
            contention: contention.clone(),
            traffic: 0,
            running: plan.gpus.iter().map(|_| running()).collect(),
        })
    }

    /// An operation of `work` begins; it raises so many interrupts and is so sensitive.
    pub fn begin<S: Sink>(
        &mut self,
        cx: &mut Context<S>,
        (gpu, engine): On,
        work: Nanos,
        (interrupts, memory): (u32, Factor),
    ) {
        let rate = rate(&self.contention, memory, self.traffic);
        if rate != FULL {
            cx.record(Event::EngineRate { gpu, engine, rate });
        }
        let left = u128::from(work.0) << 32;
        let mut running = Running { work, left, since: cx.now, rate, memory, interrupts, next: 1, due: cx.now };
        running.arm(cx, (gpu, engine));
        self.running[gpu.index()][engine.index()] = Some(running);
    }

    /// The operation may have reached an interrupt on its way; answers whether it has.
    pub fn pass<S: Sink>(&mut self, cx: &mut Context<S>, on: On) -> bool {
        let is_due = |running: &&mut Running| running.due == cx.now && running.is_on_its_way();
        let Some(running) = self.at(on).as_mut().filter(is_due) else { return false };
        running.settle(cx.now);
        running.next += 1;
        running.arm(cx, on);
        true
    }

    /// The operation may be done; answers whether it is.
    pub fn end(&mut self, now: Instant, on: On) -> bool {
        let running = self.at(on);
        let is_done = running.as_ref().is_some_and(|running| running.due == now && !running.is_on_its_way());
        if is_done {
            *running = None;
        }
        is_done
    }

    /// The CPUs cause `traffic` from now on.
    pub fn follow<S: Sink>(&mut self, cx: &mut Context<S>, traffic: u64) {
        self.traffic = traffic;
        for (gpu, engines) in self.running.iter_mut().enumerate() {
            for (engine, running) in Engine::ALL.into_iter().zip(engines) {
                let Some(running) = running else { continue };
                let rate = rate(&self.contention, running.memory, traffic);
                if rate != running.rate {
                    let gpu = GpuId(gpu as u16);
                    running.settle(cx.now);
                    running.rate = rate;
                    cx.record(Event::EngineRate { gpu, engine, rate });
                    running.arm(cx, (gpu, engine));
                }
            }
        }
    }

    fn at(&mut self, (gpu, engine): On) -> &mut Option<Running> {
        &mut self.running[gpu.index()][engine.index()]
    }
}

impl Running {
    /// Whether it raises an interrupt before its end.
    fn is_on_its_way(&self) -> bool {
        self.next < self.interrupts
    }

    /// Accounts for what was done up to `now`.
    fn settle(&mut self, now: Instant) {
        let done = u128::from(self.rate) * u128::from((now - self.since).0);
        self.left = self.left.saturating_sub(done);
        self.since = now;
    }

    /// Sets the timer of the next milestone: the interrupts of an operation are spread over its work, the last one at its
    /// end.
    fn arm<S: Sink>(&mut self, cx: &mut Context<S>, (gpu, engine): On) {
        let (done, kind) = match self.is_on_its_way() {
            true => {
                let part = u128::from(self.work.0) * u128::from(self.next) / u128::from(self.interrupts);
                (part, TimerKind::Partial(gpu, engine))
            }
            false => (u128::from(self.work.0), TimerKind::Engine(gpu, engine)),
        };
        let left_then = (u128::from(self.work.0) - done) << 32;
        let nanos = self.left.saturating_sub(left_then).div_ceil(u128::from(self.rate));
        self.due = self.since.saturating_add(Nanos(u64::try_from(nanos).unwrap_or(u64::MAX)));
        cx.set_timer(self.due, kind);
    }
}

/// The work done in a nanosecond, in 2^-32 ns, rounded down, but never nothing.
fn rate(contention: &Contention, memory: Factor, traffic: u64) -> u64 {
    let slowdown = u128::from(contention.slowdown_q32(memory, traffic));
    ((u128::from(FULL) << 32) / slowdown).max(1) as u64
}
