//! What Linux says of the machine.

use std::fs;

use laxity_sys::scheduling;

/// This machine, as Linux describes it; empty texts where it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// The name of the processor.
    pub processor: String,
    /// The release of Linux.
    pub kernel: String,
    /// The frequency governors of the CPUs that this process may use, each once.
    pub governor: String,
}

impl Host {
    /// As it is now.
    pub fn look() -> Host {
        let cpus = scheduling::usable_cpus().unwrap_or_default();
        Host { processor: processor(), kernel: kernel(), governor: governor(&cpus) }
    }
}

/// The name of the processor; empty where Linux gives none.
pub(crate) fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    processor_of(&text).unwrap_or_default()
}

/// `model name : AMD EPYC`, or what other architectures have in its place.
fn processor_of(text: &str) -> Option<String> {
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find_map(|(found, value)| (found.trim() == key).then(|| value.trim().to_owned()))
    };
    ["model name", "Model", "cpu model", "uarch"].into_iter().find_map(value).filter(|name| !name.is_empty())
}

/// The release of Linux.
pub(crate) fn kernel() -> String {
    line("/proc/sys/kernel/osrelease").unwrap_or_default()
}

/// The frequency governors of `cpus`, each once; empty where Linux has none.
pub(crate) fn governor(cpus: &[usize]) -> String {
    let of = |cpu: &usize| line(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"));
    let mut names: Vec<String> = cpus.iter().filter_map(of).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// The size of the largest cache that `cpu` has, in bytes; nothing where Linux does not say.
pub(crate) fn largest_cache(cpu: usize) -> Option<u64> {
    let size = |index| size_of(&line(&format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/size"))?);
    (0..8).filter_map(size).max()
}

/// `1024K` is 2^20.
fn size_of(text: &str) -> Option<u64> {
    let unit = match text.chars().last()? {
        'K' => 1 << 10,
        'M' => 1 << 20,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(unit)
}

/// The line that a file of Linux consists of.
fn line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_and_caches_are_read_as_linux_writes_them() {
        let text = "processor\t: 0\nmodel name\t: A: B @ 2 GHz\nflags\t\t: fpu\n\nmodel name : C\n";
        assert_eq!(processor_of(text).as_deref(), Some("A: B @ 2 GHz"));
        assert_eq!(processor_of("processor : 0\nflags : fpu\n"), None);
        assert_eq!(["32K", "8M", "77", "big", ""].map(size_of), [Some(32 << 10), Some(8 << 20), Some(77), None, None]);
    }
}
