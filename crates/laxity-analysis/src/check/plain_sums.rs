//! Tests: what is summed by staircases is what a sum over all tasks gives.

use laxity_model::rng::SplitMix64;
use laxity_model::{PriorityRule, Scheduler, Workload};

use super::Accounting;
use super::analysed_task::{AnalysedTask, Tokens, analysed_tasks};
use super::assign::assign;
use super::context::{Context, Machine};
use super::counts::{Counted, Counts};
use super::interrupts::{jobs, later, releases};
use super::preemptions::Preemptions;
use super::sharing::Sharing;
use super::uses::Lock;

/// A random system of up to forty tasks, of which some wait, for one another if `share`; with a graph, whose nodes may be
/// early.
fn workload(rng: &mut SplitMix64, share: bool) -> Workload {
    let mut text =
        "laxity = 1\nname = \"sums\"\n[platform]\ncpus = 3\ngpu = [{ name = \"gpu\", bandwidth = \"1 GB/s\" }]\n"
            .to_owned();
    text += "[gpu_management]\narbitration = { protocol = \"gpusync\", tokens = 2 }\n[[resource]]\nname = \"bus\"\n";
    for task in 0..rng.between(1, 40) {
        let period = rng.between(20, 400);
        let (deadline, jitter) = (rng.between(19, period), rng.below(3) * rng.below(10));
        let mut body = "{ cpu = \"2 us\" }".to_owned();
        for _ in 0..rng.below(4) {
            body += match rng.below(if share { 4 } else { 2 }) {
                0 => ", { cpu = \"1 us\" }",
                1 => ", { suspend = \"1 us\" }",
                2 => ", { critical = \"bus\", body = [{ cpu = \"1 us\" }] }",
                _ => ", { kernel = \"2 us\", interrupts = 2 }, { cpu = \"1 us\" }",
            };
        }
        text += &format!("[[task]]\nname = \"t{task}\"\nperiod = \"{period} us\"\ndeadline = \"{deadline} us\"\n");
        text += &format!("jitter = \"{jitter} us\"\nbody = [{body}]\n");
    }
    let period = rng.between(50, 100);
    text += "[[graph]]\nname = \"g\"\nedge = [\"a -> b\"]\n";
    text += &format!("[[graph.node]]\nname = \"a\"\nperiod = \"{period} us\"\nwcet = \"1 us\"\n");
    text += "[[graph.node]]\nname = \"b\"\nwcet = \"1 us\"\n";
    Workload::from_toml(&text, "sums.toml").expect("a valid workload")
}

fn plain_counts(context: &Context<'_>, pending: &[u64], window: u64) -> Counted {
    let sum = |of: &dyn Fn(&AnalysedTask, u64) -> u64| {
        context.members().zip(pending).map(|(task, &pending)| of(task, pending)).sum::<u64>()
    };
    let tokens = |task: &AnalysedTask| task.uses.requests.iter().filter(|it| it.lock == Lock::Gpu).count() as u64;
    Counted {
        interrupts: sum(&|task, pending| task.interrupts * jobs(task, pending, window)),
        requests: sum(&|task, pending| task.lock_requests * jobs(task, pending, window)),
        token_requests: sum(&|task, pending| tokens(task) * jobs(task, pending, window)),
        timers: sum(&|task, pending| releases(task, pending, window) + later(task, pending, window)),
    }
}

/// Preemptions of a job of `member` by members that may be more urgent.
fn plain_preemptions(context: &Context<'_>, pending: &[u64], member: usize, window: u64, reach: u64) -> u64 {
    let members: Vec<&AnalysedTask> = context.members().collect();
    let machine = context.machine;
    let rank = |member: usize| machine.rank(context.cluster.members[member], context.analysed);
    let task = members[member];
    if context.shares() {
        let changes = |task: &AnalysedTask| {
            task.wakeups() + task.interrupts * machine.sharing.schedulings_of_a_half().max(1) + 2 * task.lock_requests
        };
        let of = |(task, &pending): (&&AnalysedTask, &u64)| jobs(task, pending, window + reach) * changes(task);
        return members.iter().zip(pending).map(of).sum();
    }
    let is_edf = machine.rule == PriorityRule::Edf;
    let urgent = |&other: &usize| other != member && (is_edf || rank(other) < rank(member));
    let of = |other: usize| {
        let of = members[other];
        let held = of.node.map_or(0, |tokens| tokens.held);
        let early = if is_edf { 0 } else { of.ahead() };
        let late = reach + of.jitter + held + early + pending[other].saturating_sub(of.deadline);
        let deadline = task.deadline + task.ahead();
        let (pending, after) = match is_edf {
            true => (deadline, (deadline + late).checked_sub(of.deadline)),
            false => (pending[member] + task.ahead(), Some(pending[member] + task.ahead() + late)),
        };
        let resumed = of.suspensions * ((pending + late + of.deadline) / of.period + 1);
        after.map_or(0, |after| after / of.period + 1) + resumed
    };
    (0..members.len()).filter(urgent).map(of).sum()
}

#[test]
fn staircases_give_what_sums_over_all_tasks_give() {
    for seed in 0..600 {
        let rng = &mut SplitMix64::new(seed);
        let workload = workload(rng, seed % 2 == 0);
        let rule = [PriorityRule::Edf, PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic][seed as usize % 3];
        let scheduler = Scheduler { rule, ..Scheduler::GLOBAL_EDF };
        let mut refusals = Vec::new();
        let mut analysed = analysed_tasks(&workload, &scheduler, &mut refusals);
        for task in analysed.iter_mut().filter(|task| task.node.is_some()) {
            task.early = rng.below(3) * rng.below(task.period);
            task.node = Some(Tokens { sent: rng.below(2), is_sent: false, held: rng.below(2) * rng.below(1_000) });
        }
        let clusters = assign(&workload, &scheduler, &analysed, &mut refusals);
        let sharing = Sharing::new(&workload, &scheduler, &clusters, &analysed);
        let machine = Machine::new(&workload, &scheduler, Accounting::Safe, &clusters, sharing);
        let context = Context { machine: &machine, index: 0, cluster: &clusters[0], analysed: &analysed };
        let pending: Vec<u64> = context.members().map(|task| rng.between(1, 3 * task.deadline)).collect();
        let windows: Vec<u64> = pending.iter().map(|&pending| pending + rng.below(3_000)).collect();
        let counts = Counts::new(&context, &pending, &windows);
        let reach = rng.below(100_000);
        let mut preemptions = Preemptions::new(&context, &pending, &windows, reach);
        for index in machine.by_priority(&context.cluster.members, &analysed) {
            let member = context.member(index);
            let window = windows[member];
            assert_eq!(counts.at(window), plain_counts(&context, &pending, window), "seed {seed}, task {index}");
            let plain = plain_preemptions(&context, &pending, member, window, reach);
            assert_eq!(preemptions.of(member), plain, "seed {seed}, task {index}, {rule:?}");
            preemptions.follow(member);
        }
    }
}
