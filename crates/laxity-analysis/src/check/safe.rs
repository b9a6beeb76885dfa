//! Accounting of every delay that the simulator can show (see `docs/decisions/0003-when-overheads-happen.md`).
//!
//! The argument is suspension-oblivious: while a job is among the m most urgent pending ones and does not execute, the
//! delay counts as its execution, so it must be in its inflated execution time. The published formulas
//! ([`overheads`](crate::overheads)) charge what a job *costs*; these charge what may *delay* it, too:
//!
//! - **hold-off**: scheduler code is not interruptible. It may hold off the release's interrupt (scheduling, switch,
//!   re-arming), and then the dispatch, on a CPU that is amid a switch or was about to switch for nothing.
//! - **interrupts**: those that arrived before the job but are still waiting, and releases of a task's next jobs. Where a job
//!   is complete, its CPU handles the interrupt that releases those that its tokens were for, also of other clusters, and
//!   also beside a CPU for the interrupts of timers: so a node's release may wait behind interrupts of another cluster's
//!   CPU ([`lag`]) and for an inter-processor interrupt from there.
//! - **cache**: with several CPUs the preempted job pays for each time that it may be preempted. That its preempter pays
//!   instead is sound on one CPU, where both delay the same jobs.
//! - **displacement**: under quanta a CPU idles from a completion to the boundary, so that a preempted job is switched
//!   in from the idle process, a pair more than anyone else pays. With staggered quanta a job is displaced on the CPU
//!   that looks first, not the one with the least urgent job, and must wait for another CPU's boundary each time.
//! - **suspensions**: each makes the job ready anew, with all that a release costs and may wait for; for a time, for a
//!   lock, or for a GPU operation. So does each bottom half that the scheduler finds a CPU for (`halves`).
//! - **waiting** for others that hold something (`waiting`); the holders are delayed as the job itself would be.

use laxity_model::{InterruptHandling, Nanos, PriorityRule};

use super::analysed_task::AnalysedTask;
use super::classes::Classes;
use super::context::{Context, Inflation};
use super::counts::{Counted, Counts};
use super::edf;
use super::halves::Halves;
use super::interrupts::{arrivals, busy_period, later, releases};
use super::levels::{self, Levels};
use super::occupancy::apart;
use super::preemptions::Preemptions;
use super::served;
use super::terms::{Term, Terms};
use super::waiting::{Holding, Waiting};

/// What is the same for all members of a cluster.
struct Common<'a> {
    context: &'a Context<'a>,
    /// How long a job of each member may be pending.
    pending: &'a [u64],
    halves: Halves<'a>,
    classes: Classes<'a>,
    /// Of each member: the longest non-preemptive section that may stand in its way.
    sections: Vec<u64>,
    /// The longest non-preemptive section of all members.
    longest_section: u64,
    /// Whether members share something.
    shares: bool,
    /// A scheduling decision; with process-aware interrupts it includes the check for bottom halves.
    scheduling: u64,
    /// Scheduling, switch, re-arming: the longest piece of code that cannot be interrupted.
    pair: u64,
    /// How long interrupts may be pending on a CPU that runs jobs.
    lag: u64,
    /// How long one may wait on a dedicated CPU.
    backlog: u64,
}

/// See the head of this file.
pub(super) fn inflate(context: &Context<'_>, pending: &[u64]) -> Result<Inflation, String> {
    let common = Common::new(context, pending)?;
    let mut terms = vec![Terms::default(); context.members().len()];
    let windows: Vec<u64> = (0..terms.len()).map(|member| common.window(member)).collect();
    let counts = Counts::new(context, pending, &windows);
    let mut preemptions = common.preemptions(&windows);
    for index in context.machine.by_priority(&context.cluster.members, context.analysed) {
        let member = context.member(index);
        let preempted = preemptions.as_ref().map_or(0, |preemptions| preemptions.of(member));
        let mut counted = counts.at(windows[member]);
        counted.interrupts = counted.interrupts.saturating_add(context.machine.sharing.left_over);
        terms[member] = common.terms(member, counted, preempted)?;
        preemptions.iter_mut().for_each(|preemptions| preemptions.follow(member));
    }
    let waiting = common.shares.then(|| Waiting::new(context, pending, common.holding()));
    if let Some(waiting) = &waiting {
        add_waits(waiting, &windows, &mut terms);
    }
    // What keeps others from CPUs is not known of servers by their jobs.
    let is_kept_apart = (!context.machine.is_quantum_driven || common.shares) && !context.has_servers();
    let apart = is_kept_apart.then(|| apart(context, &terms, waiting.as_ref(), &windows));
    let levels = levels::are_argued(context).then(|| {
        Levels::new(
            context,
            &terms,
            &common.sections,
            common.dispatch_of_holders().saturating_sub(common.longest_section),
        )
    });
    let sections = edf::sections(context, waiting.as_ref());
    Ok(Inflation { terms, waiting: apart, levels, late: context.machine.lateness(), beside: Vec::new(), sections })
}

/// How long an interrupt may be waiting on a CPU that runs jobs of the cluster, until it is handled.
pub(super) fn lag(context: &Context<'_>, pending: &[u64]) -> Result<u64, String> {
    Ok(Common::new(context, pending)?.lag)
}

/// How long after it is due a release may have been handled, jobs being pending up to their deadlines.
pub(super) fn release_lag(context: &Context<'_>) -> Result<u64, String> {
    let deadlines: Vec<u64> = context.members().map(|task| task.deadline).collect();
    let common = Common::new(context, &deadlines)?;
    // Where handlers take no time, a release may still be held off by a scheduling decision, which `lag` includes.
    Ok(common.lag.saturating_add(common.backlog).saturating_add(context.machine.lateness()))
}

impl<'a> Common<'a> {
    fn new(context: &'a Context<'a>, pending: &'a [u64]) -> Result<Self, String> {
        let machine = context.machine;
        let costs = &machine.costs;
        let check = if checks_for_halves(context) { costs.pai_check } else { Nanos::ZERO };
        let scheduling = costs.scheduling.0.saturating_add(check.0);
        let pair = scheduling.saturating_add(costs.timer_rearming.0).saturating_add(costs.context_switch.0);
        let halves = Halves::new(context, pending);
        let (classes, sections) = (Classes::new(context, pending), longest_sections(context));
        let longest_section = context.members().map(|task| task.section).max().unwrap_or(0);
        let mut common = Common {
            context,
            pending,
            halves,
            classes,
            sections,
            longest_section,
            shares: context.shares(),
            scheduling,
            pair,
            lag: 0,
            backlog: 0,
        };
        let ticks = |length: u64| costs.tick.0.saturating_mul(length.div_ceil(machine.tick));
        // Threads above all jobs wait for a non-preemptive section, and for a CPU.
        let dispatch = pair.saturating_mul(2).saturating_add(costs.ipi_latency.0);
        let above = machine.sharing.devices.iter().any(|device| device.is_above(context.index));
        let section = if above { longest_section } else { 0 };
        let devices = |length: u64| {
            let others = machine.sharing.devices.iter();
            let others = others.map(|device| device.handlers(context.index, length, dispatch));
            others.fold(halves.count(length).saturating_mul(halves.each()), u64::saturating_add)
        };
        let handlers = |length: u64| {
            let timers = ticks(length).saturating_add(common.interrupts(length));
            pair.saturating_add(section).saturating_add(timers).saturating_add(devices(length))
        };
        let lag = busy_period(handlers).ok_or("ticks and interrupts leave no time to jobs; lower their costs")?;
        if machine.is_dedicated {
            let all = |length: u64| {
                let count =
                    context.analysed.iter().fold(0, |sum: u64, task| sum.saturating_add(arrivals(task, length)));
                ticks(length).saturating_add(count.saturating_mul(costs.release.0))
            };
            let overloaded = "the interrupt CPU cannot keep up with the releases; lower their cost or lengthen periods";
            common.backlog = busy_period(all).ok_or(overloaded)?.saturating_sub(costs.release.0);
        }
        halves.leave_none_to_the_daemon(lag)?;
        common.lag = lag;
        Ok(common)
    }

    /// Time that interrupts of the cluster take on the CPUs that run its jobs, in a window.
    fn interrupts(&self, length: u64) -> u64 {
        let machine = self.context.machine;
        if machine.costs.release.is_zero() {
            return 0;
        }
        let count = self.classes.sum(|class| {
            let releases = if machine.is_dedicated { 0 } else { releases(class.task, class.pending, length) };
            releases.saturating_add(later(class.task, class.pending, length))
        });
        let isolated = self.context.isolated().map(|task| served::interrupts(task, length));
        isolated.fold(count, u64::saturating_add).saturating_mul(machine.costs.release.0)
    }

    /// What makes up the execution time of a member, in whose window so many events fall and which is displaced so often.
    fn terms(&self, member: usize, counted: Counted, preemptions: u64) -> Result<Terms, String> {
        let machine = self.context.machine;
        let costs = &machine.costs;
        let task = &self.context.analysed[self.context.cluster.members[member]];
        let wakeups = self.dispatches(task);
        let window = self.window(member);
        let several = self.context.cpus() > 1;
        let mut terms = Terms::default();
        let mut add = |term: Term, count: u64, cost: u64| terms.add(term, count.saturating_mul(cost));
        add(Term::Execution, 1, task.wcet);
        add(Term::Suspension, 1, task.suspension);
        add(Term::Gpu, 1, task.uses.demand.gpu());
        add(Term::Jitter, 1, task.jitter);
        let blocking = self.sections[member];
        add(Term::Blocking, wakeups, blocking);
        if checks_for_halves(self.context) {
            // A bottom half is passed on when its CPU gets a more urgent job, of which there are fewer than CPUs.
            add(Term::Blocking, task.interrupts.saturating_mul(u64::from(self.context.cpus()) - 1), blocking);
        }
        let twice = wakeups.saturating_mul(2);
        add(Term::Scheduling, twice, self.scheduling);
        add(Term::TimerRearming, twice, costs.timer_rearming.0);
        add(Term::ContextSwitches, twice, costs.context_switch.0);
        // The interrupts of its GPU operations may be held off, too.
        add(Term::HoldOff, twice.saturating_add(task.interrupts), self.pair);
        add(Term::OwnReleases, wakeups, costs.release.0);
        add(Term::Backlog, wakeups, self.backlog);
        let tokens = task.node.unwrap_or_default();
        add(Term::Backlog, 1, tokens.held);
        match machine.is_dedicated {
            true => add(Term::OtherReleases, counted.timers, costs.release.0),
            false => {
                // Its own release is charged above.
                let isolated = self.context.isolated().map(|task| served::interrupts(task, window));
                let all = isolated.fold(counted.timers, u64::saturating_add).saturating_mul(costs.release.0);
                add(Term::OtherReleases, 1, all.saturating_sub(costs.release.0));
            }
        }
        let halves = &self.halves;
        add(Term::TopHalves, counted.interrupts, halves.top());
        add(Term::BottomHalves, counted.interrupts, halves.each() - halves.top());
        add(Term::BottomHalves, task.interrupts, halves.own());
        add(Term::BottomHalves, 1, halves.lent(member, window, self.dispatch_of_holders()));
        add(Term::HalfScheduling, 1, halves.scheduling(counted, self.pair));
        let mut others_dispatched = 0u64;
        for device in &machine.sharing.devices {
            let delay = device.delay(self.context, task, window);
            add(Term::TopHalves, 1, delay.top_halves);
            add(Term::BottomHalves, 1, delay.bottom_halves);
            add(
                Term::HalfScheduling,
                delay.dispatches,
                self.pair.saturating_mul(2).saturating_add(costs.ipi_latency.0),
            );
            others_dispatched = others_dispatched.saturating_add(delay.dispatches);
        }
        add(Term::Cache, others_dispatched, machine.cache_delay());
        let dispatch = self.pair.saturating_mul(2).saturating_add(costs.ipi_latency.0);
        for &other in &self.context.cluster.isolated {
            let delay = served::delay(self.context, self.context.cluster.members[member], other, window);
            add(Term::Servers, 1, delay.execution);
            add(Term::Servers, delay.dispatches, dispatch);
        }
        if machine.is_quantum_driven {
            let switch = self.scheduling.saturating_add(costs.context_switch.0);
            let elsewhere = if machine.is_staggered { machine.stagger().saturating_add(blocking) } else { 0 };
            add(Term::Cache, preemptions, machine.cache_delay());
            add(Term::Displacement, preemptions, switch.saturating_add(elsewhere));
            return round_up(self.context, task, terms);
        }
        // One that tokens release elsewhere, or interrupts on another CPU.
        let from_elsewhere = if several || machine.is_dedicated { wakeups } else { tokens.is_sent.into() };
        add(Term::IpiLatency, from_elsewhere, costs.ipi_latency.0);
        // Where CPUs tick at different times, a job may meet another tick on each CPU that handles its release or gets it.
        let ticks = window.div_ceil(machine.tick);
        let moves =
            if several && machine.is_staggered { wakeups.saturating_mul(2).saturating_add(preemptions) } else { 0 };
        let on_all = ticks.saturating_mul(self.context.cpus().into());
        add(Term::Ticks, ticks.saturating_add(moves).min(on_all), costs.tick.0);
        let lone = self.context.members().len() == 1;
        let counted = several || self.shares;
        let caches = if counted { preemptions } else { wakeups.saturating_mul(u64::from(!lone)) };
        add(Term::Cache, caches, machine.cache_delay());
        Ok(terms)
    }

    /// How long a job may be pending, a node's from before it arrives, and interrupts from before that are still waiting.
    fn window(&self, member: usize) -> u64 {
        let task = &self.context.analysed[self.context.cluster.members[member]];
        self.pending[member].saturating_add(self.lag).saturating_add(task.ahead())
    }

    /// How often a job, or a bottom half on its behalf, is given a CPU.
    fn dispatches(&self, task: &AnalysedTask) -> u64 {
        let each = self.context.machine.sharing.schedulings_of_a_half().saturating_mul(self.halves.in_a_row());
        task.wakeups().saturating_add(task.interrupts.saturating_mul(each))
    }

    /// What giving a CPU to a job that holds something may take: once it is granted, after each suspension.
    fn dispatch_of_holders(&self) -> u64 {
        let costs = &self.context.machine.costs;
        let parts = [
            self.pair.saturating_mul(4),
            costs.release.0,
            costs.ipi_latency.0,
            self.longest_section,
            self.context.machine.cache_delay().saturating_mul(2),
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// What a holder takes beyond what it does: it is delayed like the job that waits for it.
    fn holding(&self) -> Holding {
        let dispatch = self.dispatch_of_holders();
        let halves = self.context.machine.sharing.schedulings_of_a_half().saturating_mul(self.halves.in_a_row());
        let scheduled = dispatch.saturating_mul(halves);
        let interrupt = self.pair.saturating_add(self.halves.own()).saturating_add(scheduled);
        Holding { dispatch, section: self.longest_section, late: self.context.machine.lateness(), interrupt }
    }

    /// How often jobs are displaced; `None` where that costs nothing.
    fn preemptions<'c>(&'c self, windows: &'c [u64]) -> Option<Preemptions<'c>> {
        let machine = self.context.machine;
        let moves_cost = machine.is_staggered && !machine.costs.tick.is_zero();
        if !machine.is_quantum_driven && machine.cache_delay() == 0 && !moves_cost {
            return None;
        }
        // A chain of displacements takes a quantum a CPU.
        let chain = if machine.stagger() > 0 { machine.quantum.saturating_mul(machine.cpus.into()) } else { 0 };
        let reach = [self.lag, self.backlog, machine.costs.release.0, self.pair, machine.lateness(), chain]
            .into_iter()
            .fold(0u64, u64::saturating_add);
        Some(Preemptions::new(self.context, self.pending, windows, reach))
    }
}

/// Adds how long jobs wait for holders.
fn add_waits(waiting: &Waiting<'_>, windows: &[u64], terms: &mut [Terms]) {
    for (member, terms) in terms.iter_mut().enumerate() {
        let waits = waiting.of(member, windows[member]);
        terms.add(Term::LockWaiting, waits.locks);
        terms.add(Term::GpuWaiting, waits.gpus);
        terms.add(Term::EngineWaiting, waits.engines);
    }
}

/// Whether every scheduling decision looks for bottom halves.
fn checks_for_halves(context: &Context<'_>) -> bool {
    let sharing = &context.machine.sharing;
    sharing.handling == InterruptHandling::ProcessAware && sharing.has_gpus()
}

/// Of each member: the longest non-preemptive section that may stand in its way, under fixed priorities of a task below
/// it, under EDF of any other, because jitter may reverse the order of arrivals. A section that begins where a preempted
/// job resumes includes the cache-related delay.
pub(super) fn longest_sections(context: &Context<'_>) -> Vec<u64> {
    let machine = context.machine;
    let order = machine.by_priority(&context.cluster.members, context.analysed);
    let mut longest = vec![0; order.len()];
    let mut extend = |longest_so_far: u64, index: usize| {
        let own = &mut longest[context.member(index)];
        *own = longest_so_far.max(*own);
        longest_so_far.max(context.analysed[index].section)
    };
    order.iter().rev().fold(0, |below, &index| extend(below, index));
    if machine.rule == PriorityRule::Edf {
        order.iter().fold(0, |above, &index| extend(above, index));
    }
    let with_cache = |section: u64| if section > 0 { section.saturating_add(machine.cache_delay()) } else { 0 };
    longest.into_iter().map(with_cache).collect()
}

/// Rounds up to whole quanta less their ticks. Each self-suspension ends a quantum early, and is over late.
fn round_up(context: &Context<'_>, task: &AnalysedTask, mut terms: Terms) -> Result<Terms, String> {
    let machine = context.machine;
    let ticks = machine.ticks_per_quantum();
    let effective = machine.left_of_a_quantum();
    let effective = effective.ok_or("ticks leave nothing of a quantum; lower their cost or lengthen the quantum")?;
    let total = terms.total();
    let quanta = total.div_ceil(effective);
    let rounded = quanta.saturating_mul(machine.quantum);
    terms.add(Term::Ticks, quanta.saturating_mul(ticks));
    terms.add(Term::Rounding, rounded.saturating_sub(total).saturating_sub(quanta.saturating_mul(ticks)));
    let interruption = machine.quantum.saturating_add(machine.lateness());
    terms.add(Term::Rounding, task.suspensions.saturating_mul(interruption));
    Ok(terms)
}
