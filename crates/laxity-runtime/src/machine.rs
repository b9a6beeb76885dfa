//! Properties of this machine that get in the way of deadlines.

use std::fs;

use laxity_sys::scheduling;

use crate::LinuxScheduler;

/// The machine as Linux describes it; nothing where Linux does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The CPUs that are looked at, with their frequency governors.
    pub governors: Vec<(usize, Option<String>)>,
    /// The isolated CPUs, on which only threads run that are put there, as Linux lists them.
    pub isolated: Option<String>,
    /// How much of each period real-time threads may run, in microseconds; -1 for all of it.
    pub real_time: Option<(i64, i64)>,
    /// The load average of the last minute, in hundredths of a thread.
    pub load: Option<u64>,
}

impl Machine {
    /// The CPUs that this process may use, as they are now.
    pub fn look() -> Machine {
        let cpus = scheduling::usable_cpus().unwrap_or_default();
        let governor = |cpu| read(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"));
        let limit = |name: &str| read(&format!("/proc/sys/kernel/sched_rt_{name}_us"))?.parse().ok();
        Machine {
            governors: cpus.into_iter().map(|cpu| (cpu, governor(cpu))).collect(),
            isolated: read("/sys/devices/system/cpu/isolated"),
            real_time: limit("runtime").zip(limit("period")),
            load: read("/proc/loadavg").and_then(|text| hundredths(text.split(' ').next()?)),
        }
    }

    /// Properties that may make jobs late under `scheduler`, each with the way out.
    pub fn remarks(&self, scheduler: LinuxScheduler) -> Vec<String> {
        let mut remarks = Vec::new();
        let slow = |governor: &Option<String>| governor.as_ref().is_some_and(|governor| governor != "performance");
        if let Some((cpu, Some(governor))) = self.governors.iter().find(|(_, governor)| slow(governor)) {
            remarks.push(format!(
                "CPU {cpu} changes its frequency (governor {governor}); `cpupower frequency-set -g performance` keeps it"
            ));
        }
        if self.isolated.as_deref() == Some("") {
            remarks.push(
                "no CPU is isolated, so that anything may run beside the tasks; boot with isolcpus= or use a cpuset"
                    .to_owned(),
            );
        }
        match self.real_time {
            Some((runtime, period))
                if (0..period).contains(&runtime)
                    && [LinuxScheduler::Fifo, LinuxScheduler::Laxity].contains(&scheduler) =>
            {
                remarks.push(format!(
                    "real-time threads may have to pause for {} us of each {period} us when others want to run; `sysctl \
                     kernel.sched_rt_runtime_us=-1` lets them go on",
                    period - runtime
                ));
            }
            _ => {}
        }
        if let Some(load) = self.load.filter(|&load| load >= 50) {
            remarks.push(format!("other threads are at work: load average {}.{:02}", load / 100, load % 100));
        }
        remarks
    }
}

/// The line that a file of Linux consists of.
fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// `1.25` is 125.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.')?;
    (fraction.len() == 2).then_some(())?;
    whole.parse::<u64>().ok()?.checked_mul(100)?.checked_add(fraction.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_machine_leaves_nothing_to_say_and_each_trouble_is_said() {
        let quiet = Machine {
            governors: vec![(0, Some("performance".to_owned())), (1, None)],
            isolated: Some("1".to_owned()),
            real_time: Some((-1, 1_000_000)),
            load: Some(49),
        };
        assert_eq!(quiet.remarks(LinuxScheduler::Fifo), Vec::<String>::new());
        let busy = Machine {
            governors: vec![(0, None), (1, Some("powersave".to_owned()))],
            isolated: Some(String::new()),
            real_time: Some((950_000, 1_000_000)),
            load: hundredths("3.07"),
        };
        let remarks = busy.remarks(LinuxScheduler::Fifo);
        let words = ["CPU 1", "isolcpus", "50000 us of each 1000000 us", "load average 3.07"];
        assert_eq!(remarks.len(), words.len());
        assert!(remarks.iter().zip(words).all(|(remark, word)| remark.contains(word)), "{remarks:?}");
        assert_eq!(busy.remarks(LinuxScheduler::Other).len(), 3, "throttling is about real-time threads");
    }
}
