//! Which scheduler runs: priority rule, scope, and the realization choices of paper 002 (section 3, Table 1).

use std::fmt;
use std::str::FromStr;

/// A complete scheduler configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scheduler {
    /// How jobs are ranked.
    pub rule: PriorityRule,
    /// Which CPUs share a ready queue.
    pub scope: Scope,
    /// When scheduling decisions are made.
    pub invocation: Invocation,
    /// How the CPUs' quanta and ticks lie to one another.
    pub quanta: Quanta,
    /// Which CPUs take release interrupts.
    pub interrupts: ReleaseInterrupts,
    /// The ready queue's data structure.
    pub ready_queue: ReadyQueueKind,
    /// Whether release and scheduling handlers contend for one lock per cluster. Off by default, because measured
    /// overheads already contain the contention.
    pub coarse_lock: bool,
}

/// How jobs are ranked. Ties go to the task listed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PriorityRule {
    /// Earliest absolute deadline first.
    Edf,
    /// Shorter period first.
    RateMonotonic,
    /// Shorter relative deadline first.
    DeadlineMonotonic,
    /// The priorities given in the workload; the smaller number first.
    Given,
    /// Linux's fair class as CFS, which `SCHED_OTHER` asks for: no task ranks above others, and the one that has had least of its
    /// CPU comes next.
    Fair,
}

impl PriorityRule {
    /// Whether a job's rank is its deadline, so that jobs of a task differ in it. Where the fair class is asked for a rank,
    /// as by locks of GPUs, that is the deadline, too.
    pub const fn goes_by_deadline(self) -> bool {
        // Exhaustive: of each new rule it must be said.
        match self {
            PriorityRule::Edf | PriorityRule::Fair => true,
            PriorityRule::RateMonotonic | PriorityRule::DeadlineMonotonic | PriorityRule::Given => false,
        }
    }
}

/// Which CPUs share a ready queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All CPUs.
    Global,
    /// The CPUs of each cluster.
    Clustered,
    /// No CPUs: each has its own.
    Partitioned,
}

/// When scheduling decisions are made (paper 002: S1, S2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Invocation {
    /// Immediately, on each release and completion.
    EventDriven,
    /// Only at the boundaries of quanta.
    QuantumDriven,
}

/// How the ticks of the CPUs lie to one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quanta {
    /// All CPUs at the same time.
    Aligned,
    /// Spread evenly over a quantum: CPU `c` of `m` is `c/m` of a quantum late.
    Staggered,
}

/// Which CPUs take release interrupts (paper 002: I1, I2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseInterrupts {
    /// Every CPU both takes interrupts and runs jobs.
    Global,
    /// CPU 0 takes them all and runs no job.
    Dedicated,
}

/// The ready queue's data structure (paper 002: R1, R2, R3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadyQueueKind {
    /// One binomial heap under a coarse lock.
    Coarse,
    /// The fine-grained heap of Hunt et al.
    Fine,
    /// A heap per CPU below a heap of their heads.
    Hierarchical,
}

/// The text does not name a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown scheduler `{text}`: write an algorithm (G-EDF, C-EDF, P-EDF, G-RM, P-DM, G-FP, G-CFS, ...), a realization \
     (queue C, F or H; invocation E or Q; interrupts m or 1; `S-` in front for staggered quanta: CEm, FE1, S-CQm, ...), or \
     both as C-RM/FEm"
)]
pub struct ParseSchedulerError {
    text: String,
}

impl Scheduler {
    /// Global EDF, event-driven, binomial heap, interrupts on all CPUs: the plugin CEm of paper 002.
    pub const GLOBAL_EDF: Scheduler = Scheduler {
        rule: PriorityRule::Edf,
        scope: Scope::Global,
        invocation: Invocation::EventDriven,
        quanta: Quanta::Aligned,
        interrupts: ReleaseInterrupts::Global,
        ready_queue: ReadyQueueKind::Coarse,
        coarse_lock: false,
    };

    /// The seven plugins measured in paper 002 (Table 1), and the two staggered variants it adds.
    pub const MEASURED: [&'static str; 9] = ["CEm", "FEm", "HEm", "CQm", "CE1", "FE1", "CQ1", "S-CQm", "S-CQ1"];

    /// The name of its realization of paper 002: queue (C, F, H), invocation (E, Q), interrupts (m, 1), with `S-` in
    /// front where the quanta are staggered.
    pub fn realization(&self) -> String {
        let stagger = if self.quanta == Quanta::Staggered { "S-" } else { "" };
        let queue = match self.ready_queue {
            ReadyQueueKind::Coarse => 'C',
            ReadyQueueKind::Fine => 'F',
            ReadyQueueKind::Hierarchical => 'H',
        };
        let invocation = if self.invocation == Invocation::EventDriven { 'E' } else { 'Q' };
        let interrupts = if self.interrupts == ReleaseInterrupts::Global { 'm' } else { '1' };
        format!("{stagger}{queue}{invocation}{interrupts}")
    }

    /// The name of its algorithm: `G-EDF`, `C-RM`, `P-DM`, `G-FP`, `C-CFS`.
    pub fn algorithm(&self) -> String {
        let scope = match self.scope {
            Scope::Global => 'G',
            Scope::Clustered => 'C',
            Scope::Partitioned => 'P',
        };
        let rule = match self.rule {
            PriorityRule::Edf => "EDF",
            PriorityRule::RateMonotonic => "RM",
            PriorityRule::DeadlineMonotonic => "DM",
            PriorityRule::Given => "FP",
            PriorityRule::Fair => "CFS",
        };
        format!("{scope}-{rule}")
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Scheduler::GLOBAL_EDF
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let realization = self.realization();
        // The realizations are of a ready queue, which the fair class has not.
        if self.rule == PriorityRule::Fair && realization == Scheduler::GLOBAL_EDF.realization() {
            return f.write_str(&self.algorithm());
        }
        write!(f, "{}/{realization}", self.algorithm())
    }
}

/// Reads `ALGORITHM`, `REALIZATION` or `ALGORITHM/REALIZATION`: `G-EDF`, `CE1`, `S-CQm`, `C-RM/FEm`. Omitted
/// parts are those of [`Scheduler::GLOBAL_EDF`]; `EDF`, `RM`, `DM`, `FP`, `CFS` without a scope are global, and
/// `SCHED_OTHER`, as Linux calls it, is `CFS`.
impl FromStr for Scheduler {
    type Err = ParseSchedulerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseSchedulerError { text: text.to_owned() };
        let mut scheduler = Scheduler::GLOBAL_EDF;
        let mut parts = text.split('/');
        let first = parts.next().ok_or_else(error)?;
        match parts.next() {
            None => {
                if !parse_algorithm(first, &mut scheduler) && !parse_realization(first, &mut scheduler) {
                    return Err(error());
                }
            }
            Some(second) => {
                if parts.next().is_some()
                    || !parse_algorithm(first, &mut scheduler)
                    || !parse_realization(second, &mut scheduler)
                {
                    return Err(error());
                }
            }
        }
        Ok(scheduler)
    }
}

/// What programs ask Linux for to be scheduled by its fair class.
const LINUX_NAME: &str = "SCHED_OTHER";

fn parse_algorithm(text: &str, scheduler: &mut Scheduler) -> bool {
    let (scope, rule) = match text.split_once('-') {
        Some(("G", rule)) => (Scope::Global, rule),
        Some(("C", rule)) => (Scope::Clustered, rule),
        Some(("P", rule)) => (Scope::Partitioned, rule),
        Some(_) => return false,
        None if text == LINUX_NAME => (Scope::Global, "CFS"),
        None => (Scope::Global, text),
    };
    scheduler.scope = scope;
    scheduler.rule = match rule {
        "EDF" => PriorityRule::Edf,
        "RM" => PriorityRule::RateMonotonic,
        "DM" => PriorityRule::DeadlineMonotonic,
        "FP" => PriorityRule::Given,
        "CFS" => PriorityRule::Fair,
        _ => return false,
    };
    true
}

fn parse_realization(text: &str, scheduler: &mut Scheduler) -> bool {
    let (quanta, letters) = match text.strip_prefix("S-") {
        Some(rest) => (Quanta::Staggered, rest),
        None => (Quanta::Aligned, text),
    };
    let &[queue, invocation, interrupts] = letters.as_bytes() else { return false };
    scheduler.quanta = quanta;
    scheduler.ready_queue = match queue {
        b'C' => ReadyQueueKind::Coarse,
        b'F' => ReadyQueueKind::Fine,
        b'H' => ReadyQueueKind::Hierarchical,
        _ => return false,
    };
    scheduler.invocation = match invocation {
        b'E' => Invocation::EventDriven,
        b'Q' => Invocation::QuantumDriven,
        _ => return false,
    };
    scheduler.interrupts = match interrupts {
        b'm' => ReleaseInterrupts::Global,
        b'1' => ReleaseInterrupts::Dedicated,
        _ => return false,
    };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_twelve_realizations_are_read_and_written_by_name() {
        let mut names = Vec::new();
        for queue in ["C", "F", "H"] {
            for invocation in ["E", "Q"] {
                for interrupts in ["m", "1"] {
                    names.push(format!("{queue}{invocation}{interrupts}"));
                }
            }
        }
        assert_eq!(names.len(), 12);
        names.extend(Scheduler::MEASURED.map(str::to_owned));
        for name in names {
            let scheduler: Scheduler = name.parse().expect("a realization");
            assert_eq!(scheduler.realization(), name);
            assert_eq!(scheduler.to_string().parse(), Ok(scheduler));
        }
    }

    #[test]
    fn the_fair_class_has_the_name_of_its_algorithm_and_that_which_linux_gives_it() {
        let fair = Scheduler { rule: PriorityRule::Fair, ..Scheduler::GLOBAL_EDF };
        for name in ["G-CFS", "CFS", "SCHED_OTHER", "G-CFS/CEm"] {
            assert_eq!(name.parse(), Ok(fair), "{name}");
        }
        assert_eq!(fair.to_string(), "G-CFS");
        let partitioned: Scheduler = "P-CFS/CE1".parse().expect("a scheduler");
        assert_eq!(partitioned.to_string(), "P-CFS/CE1");
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_way_out() {
        let error = "GEDF".parse::<Scheduler>().expect_err("no such name");
        assert!(error.to_string().contains("`GEDF`") && error.to_string().contains("G-EDF"));
        for text in ["", "/", "C-EDF/", "CXm", "X-EDF", "S-G-EDF", "C-EDF/CEm/CEm"] {
            assert!(text.parse::<Scheduler>().is_err(), "{text}");
        }
    }
}
