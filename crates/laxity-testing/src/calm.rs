//! Whether the machine did nothing else while a test ran: what is true of a calm machine only is tested on a calm machine
//! only, and calm is measured.

use std::fmt;
use std::fs;

use crate::skip;

/// Measures from here on.
#[derive(Debug)]
pub struct CalmMeter {
    begin: Option<Usage>,
}

/// What the CPUs did meanwhile, in ticks of the clock of `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance {
    usage: Option<Usage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Usage {
    /// All CPUs together, idle or not.
    total: u64,
    /// A hypervisor ran other guests while this one had something to run.
    stolen: u64,
    /// CPU time of all threads and interrupts.
    busy: u64,
    /// CPU time of this process, and of its children that it waited for.
    own: u64,
}

/// Other processes may use a hundredth of the CPUs.
const OTHERS_MAX_PERCENT: u64 = 1;

impl CalmMeter {
    /// Begins.
    pub fn begin() -> CalmMeter {
        CalmMeter { begin: Usage::now() }
    }

    /// What happened since.
    pub fn end(&self) -> Disturbance {
        Disturbance { usage: self.begin.zip(Usage::now()).map(|(begin, end)| end.since(begin)) }
    }
}

impl Disturbance {
    /// Whether next to nothing disturbed this process. A machine that does not tell is not calm.
    pub fn is_calm(&self) -> bool {
        self.usage.is_some_and(|usage| {
            usage.total > 0 && usage.stolen == 0 && usage.others() * 100 <= usage.total * OTHERS_MAX_PERCENT
        })
    }
}

impl Usage {
    fn now() -> Option<Usage> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let own = fs::read_to_string("/proc/self/stat").ok()?;
        Usage::of(stat.lines().next()?, &own)
    }

    /// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal. And `/proc/self/stat`, whose
    /// fields 14 to 17 are what this process used, and its children.
    fn of(all: &str, own: &str) -> Option<Usage> {
        let all: Vec<u64> = all.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
        let &[user, nice, system, idle, waiting, irq, soft_irq, stolen, ..] = &all[..] else { return None };
        // The name of the process, in parentheses, may have anything in it.
        let own = own.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
        let own = own.map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
        let busy = user + nice + system + irq + soft_irq;
        Some(Usage { total: busy + idle + waiting + stolen, stolen, busy, own })
    }

    fn since(self, begin: Usage) -> Usage {
        Usage {
            total: self.total.saturating_sub(begin.total),
            stolen: self.stolen.saturating_sub(begin.stolen),
            busy: self.busy.saturating_sub(begin.busy),
            own: self.own.saturating_sub(begin.own),
        }
    }

    /// CPU time of other processes.
    fn others(self) -> u64 {
        self.busy.saturating_sub(self.own)
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.usage {
            Some(usage) => write!(
                f,
                "of {} ticks of all CPUs the hypervisor took {} and other processes {}",
                usage.total,
                usage.stolen,
                usage.others()
            ),
            None => write!(f, "/proc does not tell what the CPUs did"),
        }
    }
}

/// How often something is tried before the machine is said not to be calm.
const ATTEMPTS: usize = 5;

/// What took too long, or had too little of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// What it was, and both numbers.
    pub what: String,
    /// Whether the machine was calm, where the test knows better than the meter: other processes than this one may belong
    /// to the test.
    pub calm: Option<bool>,
}

impl From<String> for Late {
    fn from(what: String) -> Late {
        Late { what, calm: None }
    }
}

/// Tries what holds on a calm machine, where only the time that things took can be wrong: `try_once` panics for all else, and
/// says in its error what took too long. One success in five tries is enough. Without one this panics if the machine was
/// calm meanwhile, and else notes the test, or this part of it, as skipped, with what was seen. The ticks of `/proc` do not
/// show the shortest disturbances: for this a single failure proves nothing.
#[track_caller]
pub fn on_a_calm_machine<T>(mut try_once: impl FnMut() -> Result<T, Late>) -> Option<T> {
    let (mut seen, mut calm) = (Vec::new(), 0);
    for _ in 0..ATTEMPTS {
        let meter = CalmMeter::begin();
        let late = match try_once() {
            Ok(found) => return Some(found),
            Err(late) => late,
        };
        let disturbance = meter.end();
        let seen_now = format!("{} ({disturbance})", late.what);
        eprintln!("{seen_now}");
        calm += usize::from(late.calm.unwrap_or_else(|| disturbance.is_calm()));
        seen.push(seen_now);
    }
    assert!(calm == 0, "{ATTEMPTS} tries, {calm} of them on a calm machine: {}", seen.join("; "));
    skip(format_args!("this machine is not calm: {}", seen.join("; ")));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "cpu 100 0 100 1000 0 0 0 5 0 0";

    fn disturbance(end: &str, own: u64) -> Disturbance {
        let process = |own: u64| format!("1 (a b) c) S 1 1 1 0 0 0 0 0 0 0 {own} 0 0 0 20");
        let usage = |all: &str, own| Usage::of(all, &process(own)).expect("as Linux writes it");
        Disturbance { usage: Some(usage(end, own).since(usage(BEGIN, 0))) }
    }

    #[test]
    fn a_machine_that_ran_this_process_alone_is_calm() {
        let calm = disturbance("cpu 150 0 101 1149 0 0 0 5 0 0", 50);
        assert!(calm.is_calm(), "{calm}");
    }

    #[test]
    fn stolen_time_and_other_processes_disturb() {
        let stolen = disturbance("cpu 150 0 100 1149 0 0 0 6 0 0", 50);
        assert!(!stolen.is_calm(), "{stolen}");
        let others = disturbance("cpu 153 0 100 1147 0 0 0 5 0 0", 50);
        assert!(!others.is_calm(), "{others}");
        assert_eq!(others.to_string(), "of 200 ticks of all CPUs the hypervisor took 0 and other processes 3");
    }

    #[test]
    fn one_success_is_enough_and_ends_the_tries() {
        let mut tries = 0;
        let found = on_a_calm_machine(|| {
            tries += 1;
            if tries < 3 { Err(Late::from("late".to_owned())) } else { Ok(tries) }
        });
        assert_eq!((found, tries), (Some(3), 3));
    }

    #[test]
    #[should_panic = "5 tries, 5 of them on a calm machine: late"]
    fn what_is_late_on_a_calm_machine_each_time_is_wrong() {
        on_a_calm_machine(|| Err::<(), _>(Late { what: "late".to_owned(), calm: Some(true) }));
    }

    #[test]
    fn a_machine_that_does_not_tell_is_not_calm() {
        assert!(!Disturbance { usage: None }.is_calm());
        assert!(!disturbance(BEGIN, 0).is_calm(), "no tick has passed");
        assert_eq!(Usage::of("cpu 1 2", "1 (a) S"), None);
    }
}
