//! What a job does, as a list.

use laxity_model::{ExecutionTime, LockId, Nanos, Step};

/// One thing that a job does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Computes.
    Run(ExecutionTime),
    /// Computes and lets no other job have its CPU.
    NonPreemptive(ExecutionTime),
    /// Sleeps.
    Suspend(ExecutionTime),
    Lock(LockId),
    Unlock(LockId),
    /// Nothing: a place in the list where a simulated job does something that takes no time.
    Pass,
}

/// The steps of `body`, which has no GPU operations, at the places that they have in a simulation: the place of a step
/// says what is drawn for it.
pub(crate) fn flatten(body: &[Step]) -> Vec<Op> {
    let mut ops = Vec::new();
    steps(body, &mut ops);
    if !matches!(ops.first(), Some(Op::Run(_) | Op::NonPreemptive(_))) {
        ops.insert(0, Op::Pass);
    }
    ops
}

fn steps(body: &[Step], ops: &mut Vec<Op>) {
    for step in body {
        match step {
            Step::Cpu(time) => ops.push(Op::Run(time.clone())),
            Step::NonPreemptive(time) => ops.push(Op::NonPreemptive(time.clone())),
            Step::Suspend(time) => {
                if matches!(ops.last(), None | Some(Op::Suspend(_))) {
                    ops.push(Op::Run(ExecutionTime::constant(Nanos::ZERO)));
                }
                ops.push(Op::Suspend(time.clone()));
            }
            Step::Critical { resource, body } => {
                let lock = LockId(*resource as u16);
                on_cpu(Op::Lock(lock), ops);
                ops.push(Op::Pass);
                steps(body, ops);
                on_cpu(Op::Unlock(lock), ops);
            }
            Step::Gpu(_) | Step::GpuSection { .. } => unreachable!("a plan refuses what uses GPUs"),
        }
    }
}

/// After a suspension a simulated job is dispatched first.
fn on_cpu(op: Op, ops: &mut Vec<Op>) {
    if matches!(ops.last(), Some(Op::Suspend(_))) {
        ops.push(Op::Pass);
    }
    ops.push(op);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the simulator has them: a suspension follows something, and a lock a dispatch.
    #[test]
    fn steps_have_the_places_that_they_have_in_a_simulation() {
        let time = |span| ExecutionTime::constant(Nanos(span));
        let section = Step::Critical { resource: 3, body: vec![Step::Cpu(time(7))] };
        let ops = flatten(&[Step::Suspend(time(1)), Step::Suspend(time(2)), section]);
        let (run, lock) = (|span| Op::Run(time(span)), LockId(3));
        let (one, two) = (Op::Suspend(time(1)), Op::Suspend(time(2)));
        let section = [Op::Pass, Op::Lock(lock), Op::Pass, run(7), Op::Unlock(lock)];
        assert_eq!(ops, [vec![run(0), one, run(0), two], section.to_vec()].concat());
    }
}
