//! From a scheduler's configuration to the policy that carries it out.

use laxity_model::{Invocation, PriorityRule, Quanta, ReadyQueueKind, Scheduler};

use super::ready::{BinomialHeap, HierarchicalQueue, HuntHeap, ReadyQueue};
use super::{CpuPolicy, EventDriven, QuantumDriven, Ranking, fair};

/// The policy of one cluster of `cpus` CPUs and `tasks` tasks, all twelve realizations of paper 002 alike. (The
/// thirteenth choice, which CPU takes release interrupts, is the driver's: a dedicated CPU belongs to no cluster.) The fair
/// class ranks no jobs and has queues of its own; its `tunables` are those of the machine.
pub fn build(
    scheduler: &Scheduler,
    tunables: fair::Parameters,
    ranking: Ranking,
    tasks: usize,
    cpus: usize,
) -> Box<dyn CpuPolicy> {
    if scheduler.rule == PriorityRule::Fair {
        return Box::new(fair::Fair::new(tunables, tasks, cpus));
    }
    match scheduler.ready_queue {
        ReadyQueueKind::Coarse => with_queue::<BinomialHeap>(scheduler, ranking, tasks, cpus),
        ReadyQueueKind::Fine => with_queue::<HuntHeap>(scheduler, ranking, tasks, cpus),
        ReadyQueueKind::Hierarchical => with_queue::<HierarchicalQueue>(scheduler, ranking, tasks, cpus),
    }
}

fn with_queue<Q: ReadyQueue + 'static>(
    scheduler: &Scheduler,
    ranking: Ranking,
    tasks: usize,
    cpus: usize,
) -> Box<dyn CpuPolicy> {
    let quanta: Quanta = scheduler.quanta;
    match scheduler.invocation {
        Invocation::EventDriven => Box::new(EventDriven::<Q>::new(ranking, tasks, cpus)),
        Invocation::QuantumDriven => Box::new(QuantumDriven::<Q>::new(ranking, tasks, cpus, quanta)),
    }
}
