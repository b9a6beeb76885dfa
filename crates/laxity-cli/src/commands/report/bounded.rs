//! Whether bounds that were proven are about a schedule that was observed.

use laxity_model::{PriorityRule, Scheduler};
use laxity_trace::{LinuxClass, Origin, TraceHeader};

/// Why bounds of the workload that `proven` heads say nothing of the schedule that `seen` heads; `None`: they are about it.
pub fn unbounded(proven: &TraceHeader, seen: &TraceHeader) -> Option<String> {
    let Scheduler { rule, scope, .. } = proven.scheduler;
    let is_same = match seen.origin {
        Origin::Simulated => seen.scheduler == proven.scheduler,
        // Live there is one realization of each policy.
        Origin::Live => (seen.scheduler.rule, seen.scheduler.scope) == (rule, scope),
    };
    if !is_same {
        return Some(format!("it is under {}", seen.scheduler));
    }
    if seen.cpus != proven.cpus {
        return Some(format!("it is on {} CPUs in place of {}", seen.cpus, proven.cpus));
    }
    if seen.arbitration != proven.arbitration {
        return Some(format!("its GPUs are shared by \"{}\"", seen.arbitration));
    }
    if seen.follows_scheduler() {
        return None;
    }
    match seen.linux_class {
        None => Some("its trace does not say what scheduled it".to_owned()),
        Some(LinuxClass::Fifo) if rule != PriorityRule::Fair && !rule.goes_by_deadline() => None,
        Some(LinuxClass::Deadline) if rule == PriorityRule::Edf => None,
        Some(LinuxClass::Kernel) if rule != PriorityRule::Fair => None,
        Some(class) => Some(format!("{} does not schedule by {}", class.name(), proven.scheduler)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(origin: Origin, scheduler: &str) -> TraceHeader {
        TraceHeader::new(origin, "w", 2, scheduler.parse().expect("a scheduler"))
    }

    fn live(scheduler: &str, linux_class: Option<LinuxClass>) -> TraceHeader {
        TraceHeader { linux_class, ..header(Origin::Live, scheduler) }
    }

    #[test]
    fn bounds_are_about_runs_by_the_workloads_own_policy_alone() {
        let [rm, edf] = ["P-RM", "G-EDF"].map(|policy| header(Origin::Simulated, policy));
        let holds = |proven: &TraceHeader, seen: TraceHeader| unbounded(proven, &seen).is_none();
        assert!(holds(&rm, rm.clone()) && !holds(&rm, edf.clone()));
        assert!(
            holds(&rm, live("P-RM", Some(LinuxClass::Fifo))) && !holds(&edf, live("G-EDF", Some(LinuxClass::Fifo)))
        );
        assert!(holds(&edf, live("G-EDF", Some(LinuxClass::Deadline))) && !holds(&rm, live("P-RM", None)));
        assert!(
            holds(&edf, live("G-EDF", Some(LinuxClass::Kernel))) && holds(&rm, live("P-RM", Some(LinuxClass::Kernel)))
        );
        assert!(holds(&edf, TraceHeader { is_linked: true, ..live("G-EDF", None) }));
        assert!(!holds(&rm, TraceHeader { cpus: 1, ..rm.clone() }));
        assert!(!holds(&rm, TraceHeader { arbitration: "gpusync".to_owned(), ..rm.clone() }));
        let why = unbounded(&rm, &live("P-RM", Some(LinuxClass::Other)));
        assert_eq!(why.as_deref(), Some("SCHED_OTHER does not schedule by P-RM/CEm"));
    }
}
