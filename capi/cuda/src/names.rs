//! Entry points by name and version: which wrapper stands for what `cuGetProcAddress` found.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::LazyLock;

use crate::wrap;

/// A line for each form of an entry point: its name, the version, its symbol (`capi/softcuda/src/names.rs`).
const TABLE: &str = include_str!("../entry_points.txt");

/// The version of CUDA that the table is of.
pub const KNOWN: i32 = 13_050;

const PER_THREAD_STREAM: u64 = 2;

static WRAPPERS: LazyLock<BTreeMap<&str, usize>> =
    LazyLock::new(|| wrap::rows().into_iter().map(|(name, at)| (name, at as usize)).collect());

/// What is known of an entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    Wrapped(*mut c_void),
    /// It issues nothing.
    PassedOn,
    /// Its form may be a later one than those of the table.
    Newer,
    Unknown,
}

/// The form of the entry point called `name` that a program of that `version` gets, with these flags.
pub fn find(name: &str, version: i32, flags: u64) -> Known {
    let mut best: Option<(i32, &str)> = None;
    for line in TABLE.lines() {
        let mut words = line.split(' ');
        let (Some(known), Some(since), Some(symbol)) = (words.next(), words.next(), words.next()) else { continue };
        let Ok(since) = since.parse() else { continue };
        let is_per_thread = symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
        if known != name || (is_per_thread && flags & PER_THREAD_STREAM == 0) || since > version {
            continue;
        }
        if best.is_none_or(|(best, _)| since >= best) {
            best = Some((since, symbol));
        }
    }
    let Some((_, symbol)) = best else { return Known::Unknown };
    match WRAPPERS.get(symbol) {
        Some(_) if version > KNOWN => Known::Newer,
        Some(&wrapper) => Known::Wrapped(wrapper as *mut c_void),
        None => Known::PassedOn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_point_that_issues_is_wrapped_or_listed_with_the_reason() {
        // Of CUDA's first interface, for launches by which no program of today is built; objects of other interfaces,
        // pages, and what changes no memory of a kernel.
        let passed_on = [
            "cuLaunch",
            "cuLaunchGrid",
            "cuLaunchGridAsync",
            "cuLaunchCooperativeKernelMultiDevice",
            "cuMemMapArrayAsync",
            "cuMemBatchDecompressAsync",
            "cuMemDiscardBatchAsync",
            "cuFabricCpyBatchAsync",
            "cuGraphicsMapResources",
            "cuGraphicsUnmapResources",
            "cuStreamAttachMemAsync",
            "cuSignalExternalSemaphoresAsync",
            "cuMemAllocAsync",
            "cuMemAllocFromPoolAsync",
            "cuMemFreeAsync",
            "cuStreamWriteValue32",
            "cuStreamWriteValue64",
        ];
        let v1 = |name: &str, symbol: &str| {
            let has_later = TABLE.lines().any(|line| line.split(' ').nth(2) == Some(&format!("{name}_v2")));
            has_later && !symbol.contains("_v") && !symbol.contains("_pts") && !symbol.contains("_ptds")
        };
        for line in TABLE.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let (name, symbol) = (words[0], words[2]);
            let issues =
                ["cuLaunch", "cuMemcpy", "cuMemset", "cuMemPrefetch"].iter().any(|start| name.starts_with(start))
                    || name.ends_with("Async")
                    || ["cuGraphLaunch", "cuGraphicsMapResources", "cuStreamWaitEvent"].contains(&name);
            let is_old = v1(name, symbol) && !WRAPPERS.contains_key(symbol);
            assert!(
                !issues || WRAPPERS.contains_key(symbol) || passed_on.contains(&name) || is_old,
                "{symbol} issues an operation"
            );
        }
    }

    #[test]
    fn a_program_gets_the_wrapper_of_its_version_and_of_its_default_stream() {
        let wrapper = |symbol: &str| Known::Wrapped(WRAPPERS[symbol] as *mut c_void);
        assert_eq!(find("cuMemcpyHtoD", 12_000, 1), wrapper("cuMemcpyHtoD_v2"));
        assert_eq!(find("cuMemcpyHtoD", 12_000, PER_THREAD_STREAM), wrapper("cuMemcpyHtoD_v2_ptds"));
        assert_eq!(find("cuLaunchKernel", 4000, 0), wrapper("cuLaunchKernel"));
        assert_eq!(find("cuLaunchKernel", KNOWN + 1, 0), Known::Newer);
        assert_eq!(find("cuDeviceGetCount", KNOWN + 1, 0), Known::PassedOn);
        assert_eq!(find("cuLaunchEverything", 13_000, 0), Known::Unknown);
    }
}
