//! Lists of CPUs as Linux writes them: `0-3,8`.

use crate::CpuId;
use crate::limits::CPUS_MAX;

/// The CPUs that `text` lists, in its order; `None` if it is no such list or names a CPU that no platform has.
pub(crate) fn parse(text: &str) -> Option<Vec<CpuId>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last || cpus.len() > CPUS_MAX {
            return None;
        }
        cpus.extend((first..=last).map(CpuId));
    }
    Some(cpus)
}

/// The first number of a list that is above all CPUs that there can be.
pub(crate) fn first_beyond(text: &str) -> Option<&str> {
    let mut numbers = text.split([',', '-']).map(|number| number.trim_matches(' '));
    let is_beyond = |digits: &&str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number && digits.parse::<u64>().map_or(true, |cpu| cpu >= CPUS_MAX as u64)
    };
    numbers.find(is_beyond)
}

fn number(text: &str) -> Option<u16> {
    let digits = text.trim_matches(' ');
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|&cpu| usize::from(cpu) < CPUS_MAX)
}

/// The list as text; `None` where the CPUs do not ascend and the text could not keep their order.
pub(crate) fn write(cpus: &[CpuId]) -> Option<String> {
    if cpus.is_empty() || !cpus.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let runs = cpus.chunk_by(|a, b| a.0 + 1 == b.0);
    let part = |run: &[CpuId]| match run {
        [one] => one.0.to_string(),
        [first, .., last] => format!("{}-{}", first.0, last.0),
        [] => unreachable!("a chunk has at least one element"),
    };
    Some(runs.map(part).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(numbers: &[u16]) -> Vec<CpuId> {
        numbers.iter().copied().map(CpuId).collect()
    }

    #[test]
    fn lists_are_read_and_written_as_linux_does() {
        assert_eq!(parse("0-3,8"), Some(cpus(&[0, 1, 2, 3, 8])));
        assert_eq!(parse("5, 4"), Some(cpus(&[5, 4])));
        assert_eq!(write(&cpus(&[0, 1, 2, 3, 8])).as_deref(), Some("0-3,8"));
        assert_eq!(write(&cpus(&[5, 4])), None, "the order would be lost");
        for text in ["", "-", "3-1", "0-1024", "a", "1,,2", "0-1-2", "+1", "99999999999"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(first_beyond("0-1024"), Some("1024"));
        assert_eq!(first_beyond("1, 99999999999999999999999"), Some("99999999999999999999999"));
        assert_eq!(["3-1", "a", "", "1023"].map(first_beyond), [None; 4]);
    }
}
