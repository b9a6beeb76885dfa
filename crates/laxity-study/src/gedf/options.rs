//! What the paper leaves open, as named options.

use std::fmt;
use std::str::FromStr;

use laxity_analysis::overheads::Beyond;
use laxity_model::Nanos;

/// Options of the study. The default is closest to what the paper says; [`Display`](fmt::Display) and [`FromStr`] write
/// and read it as one line, `hard=task-centric soft=...`, in which what is left out has its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// How hard curves account for interrupts: the paper refers to another for it.
    pub hard: Accounting,
    /// How soft curves do.
    pub soft: Accounting,
    /// What an overhead is for fewer tasks than were measured.
    pub below: Beyond,
    /// What it is for more: uniform light sets have up to 640 tasks, and 450 were measured.
    pub above: Beyond,
    /// By how many CPUs quanta are staggered if one is dedicated to interrupts.
    pub staggered_cpus: StaggeredCpus,
    /// Whether a CPU dedicated to interrupts may be overloaded.
    pub interrupt_cpu: InterruptCpu,
    /// Cache-related preemption and migration delay of each job. The paper took it from an earlier one, and does not
    /// say with which working set.
    pub cache_delay: Nanos,
}

/// How interrupts are accounted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accounting {
    /// Every job pays for every interrupt that may arrive between its release and its deadline.
    TaskCentric,
    /// Interrupts are paid for in proportion to execution; quantum-driven, by every quantum. Published later than the
    /// paper.
    PreemptionCentric,
}

/// By how many CPUs quanta are staggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StaggeredCpus {
    /// All CPUs, one dedicated to interrupts included.
    All,
    /// Those that run jobs.
    Scheduling,
}

/// Whether a CPU dedicated to interrupts is asked to keep up with them.
///
/// Above about 450 light tasks the measured release overheads of CE1 and FE1 would take more than one CPU if every job
/// were released by an interrupt of its own, yet the paper finds such sets schedulable: it cannot have asked. Its
/// release queue releases jobs of one instant by one interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterruptCpu {
    /// It is taken for granted that it does.
    KeepsUp,
    /// Sets that release more than it can handle, one interrupt a job, are rejected.
    Checked,
}

/// The text is not a line of options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown option `{word}`; write {allowed}")]
pub struct ParseOptionsError {
    word: String,
    allowed: &'static str,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            hard: Accounting::TaskCentric,
            soft: Accounting::PreemptionCentric,
            below: Beyond::Hold,
            above: Beyond::Extrapolate,
            staggered_cpus: StaggeredCpus::All,
            interrupt_cpu: InterruptCpu::KeepsUp,
            cache_delay: Nanos::ZERO,
        }
    }
}

const ACCOUNTING: [(&str, Accounting); 2] =
    [("task-centric", Accounting::TaskCentric), ("preemption-centric", Accounting::PreemptionCentric)];
const BEYOND: [(&str, Beyond); 2] = [("hold", Beyond::Hold), ("extrapolate", Beyond::Extrapolate)];
const STAGGERED: [(&str, StaggeredCpus); 2] = [("all", StaggeredCpus::All), ("scheduling", StaggeredCpus::Scheduling)];
const INTERRUPT_CPU: [(&str, InterruptCpu); 2] =
    [("keeps-up", InterruptCpu::KeepsUp), ("checked", InterruptCpu::Checked)];

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "hard={} soft={} below={} above={} staggered-cpus={} interrupt-cpu={} cache-delay-ns={}",
            name(&ACCOUNTING, self.hard),
            name(&ACCOUNTING, self.soft),
            name(&BEYOND, self.below),
            name(&BEYOND, self.above),
            name(&STAGGERED, self.staggered_cpus),
            name(&INTERRUPT_CPU, self.interrupt_cpu),
            self.cache_delay.0
        )
    }
}

impl FromStr for Options {
    type Err = ParseOptionsError;

    fn from_str(text: &str) -> Result<Self, ParseOptionsError> {
        let mut options = Options::default();
        for word in text.split_whitespace() {
            let error = |allowed| ParseOptionsError { word: word.to_owned(), allowed };
            let (key, value) = word.split_once('=').ok_or(error("KEY=VALUE"))?;
            let read = match key {
                "hard" => set(&mut options.hard, &ACCOUNTING, value, "hard=task-centric, hard=preemption-centric"),
                "soft" => set(&mut options.soft, &ACCOUNTING, value, "soft=task-centric, soft=preemption-centric"),
                "below" => set(&mut options.below, &BEYOND, value, "below=hold, below=extrapolate"),
                "above" => set(&mut options.above, &BEYOND, value, "above=hold, above=extrapolate"),
                "staggered-cpus" => {
                    let allowed = "staggered-cpus=all, staggered-cpus=scheduling";
                    set(&mut options.staggered_cpus, &STAGGERED, value, allowed)
                }
                "interrupt-cpu" => {
                    let allowed = "interrupt-cpu=keeps-up, interrupt-cpu=checked";
                    set(&mut options.interrupt_cpu, &INTERRUPT_CPU, value, allowed)
                }
                "cache-delay-ns" => match value.parse() {
                    Ok(nanos) if Nanos(nanos) <= Nanos::LONGEST => {
                        options.cache_delay = Nanos(nanos);
                        Ok(())
                    }
                    _ => Err("cache-delay-ns=NANOSECONDS"),
                },
                _ => Err("hard, soft, below, above, staggered-cpus, interrupt-cpu, cache-delay-ns"),
            };
            read.map_err(error)?;
        }
        Ok(options)
    }
}

fn name<T: Copy + PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|named| named.1 == value).map_or("?", |named| named.0)
}

fn set<T: Copy>(
    field: &mut T,
    names: &[(&'static str, T)],
    value: &str,
    allowed: &'static str,
) -> Result<(), &'static str> {
    *field = names.iter().find(|named| named.0 == value).ok_or(allowed)?.1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_read_back_as_they_were_written() {
        for text in [
            "",
            "hard=task-centric",
            "hard=preemption-centric soft=task-centric below=extrapolate above=hold",
            "staggered-cpus=scheduling interrupt-cpu=checked cache-delay-ns=25000",
        ] {
            let options: Options = text.parse().expect("valid");
            assert_eq!(options.to_string().parse(), Ok(options), "{text}");
            for word in text.split_whitespace() {
                assert!(options.to_string().contains(word), "{options} has {word}");
            }
        }
        assert!(Options::default().to_string().starts_with("hard=task-centric soft=preemption-centric"));
    }

    #[test]
    fn an_unknown_option_is_refused_with_the_way_out() {
        let says = |text: &str| text.parse::<Options>().expect_err("unknown").to_string();
        assert_eq!(says("below=no"), "unknown option `below=no`; write below=hold, below=extrapolate");
        assert!(says("speed=1").contains("staggered-cpus"));
        assert!(says("hold").contains("KEY=VALUE"));
        assert!(says("cache-delay-ns=-1").contains("NANOSECONDS"));
    }
}
