//! The systems that are compared: ways to handle interrupts in section V, columns of Table II in section VI.

use laxity_model::{GpuArbitration, InterruptHandling, PriorityRule, Scheduler, Scope, ThreadPriority};

/// What section V compares, with the paper's names.
pub const HANDLINGS: [(&str, InterruptHandling); 3] = [
    ("SLIH", InterruptHandling::Linux),
    ("PAI", InterruptHandling::ProcessAware),
    ("klmirqd", InterruptHandling::Klmirqd { threads: None }),
];

/// A column of Table II.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct System {
    /// Its letter.
    pub column: char,
    /// What it stands for in the paper.
    pub name: &'static str,
    rule: PriorityRule,
    arbitration: GpuArbitration,
    handling: InterruptHandling,
}

/// The k-FMLP as implemented in LITMUS^RT: the shortest queue is that of the fewest requests.
pub(super) const K_FMLP: GpuArbitration = GpuArbitration::KFmlp { length_aware: false };

impl System {
    /// The columns, in the table's order.
    ///
    /// All are simulated with one and the same scheduler and its overheads: what tells (a) to (c) from the others is the
    /// GPUs' semaphore and the handling of interrupts, not the scheduler of PREEMPT_RT or Linux.
    pub const ALL: [System; 8] = {
        use GpuArbitration::Semaphore;
        use InterruptHandling::{Linux, PreemptRt, ProcessAware};
        use PriorityRule::{Edf, RateMonotonic};
        const KLMIRQD: InterruptHandling = InterruptHandling::Klmirqd { threads: None };
        [
            System::new('a', "PREEMPT_RT, low", RateMonotonic, Semaphore, PreemptRt(ThreadPriority::Low)),
            System::new('b', "PREEMPT_RT, high", RateMonotonic, Semaphore, PreemptRt(ThreadPriority::High)),
            System::new('c', "Linux, SLIH", RateMonotonic, Semaphore, Linux),
            System::new('d', "LITMUS C-RM, SLIH", RateMonotonic, K_FMLP, Linux),
            System::new('e', "LITMUS C-RM, klmirqd", RateMonotonic, K_FMLP, KLMIRQD),
            System::new('f', "LITMUS C-RM, PAI", RateMonotonic, K_FMLP, ProcessAware),
            System::new('g', "LITMUS C-EDF, klmirqd", Edf, K_FMLP, KLMIRQD),
            System::new('h', "LITMUS C-EDF, PAI", Edf, K_FMLP, ProcessAware),
        ]
    };

    const fn new(
        column: char,
        name: &'static str,
        rule: PriorityRule,
        arbitration: GpuArbitration,
        handling: InterruptHandling,
    ) -> System {
        System { column, name, rule, arbitration, handling }
    }

    /// How it schedules jobs: clustered, by events.
    pub fn scheduler(&self) -> Scheduler {
        Scheduler { rule: self.rule, ..clustered_edf() }
    }

    /// How it grants GPUs.
    pub fn arbitration(&self) -> GpuArbitration {
        self.arbitration
    }

    /// How it handles interrupts.
    pub fn handling(&self) -> InterruptHandling {
        self.handling
    }
}

/// LITMUS^RT's C-EDF.
pub(super) fn clustered_edf() -> Scheduler {
    Scheduler { scope: Scope::Clustered, ..Scheduler::GLOBAL_EDF }
}
