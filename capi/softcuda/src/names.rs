//! Which entry points there are: their names, the version of CUDA since which each has its form, and their symbols.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::LazyLock;

use crate::export;

/// A line for each form of an entry point: its name, the version, its symbol. Read off `cudaTypedefs.h` of CUDA 13.5
/// (PyPI's `nvidia-cuda-runtime` 13.5.37).
const TABLE: &str = include_str!("../../cuda/entry_points.txt");

/// What this driver is: CUDA 13.0.
pub const VERSION: i32 = 13_000;

/// Flags of `cuGetProcAddress`.
pub const LEGACY_STREAM: u64 = 1;
pub const PER_THREAD_STREAM: u64 = 2;

static FUNCTIONS: LazyLock<BTreeMap<&str, usize>> = LazyLock::new(|| {
    export::rows().into_iter().chain(export::unsupported::rows()).map(|(name, at)| (name, at as usize)).collect()
});

/// What `cuGetProcAddress` finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Function(*const c_void),
    /// There is one, in a later version than was asked for.
    Later,
    Unknown,
}

/// The form of the entry point called `name` that a program of that `version` knows.
pub fn find(name: &str, version: i32, flags: u64) -> Found {
    let mut best: Option<(i32, &str)> = None;
    let mut is_known = false;
    for (known, since, symbol) in table().filter(|(known, ..)| *known == name) {
        debug_assert_eq!(known, name, "filtered");
        let is_per_thread = symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
        if is_per_thread && flags & PER_THREAD_STREAM == 0 {
            continue;
        }
        is_known = true;
        // The form for per-thread streams has the version of the plain one, or a later one.
        if since <= version && since <= VERSION && best.is_none_or(|(best, _)| since >= best) {
            best = Some((since, symbol));
        }
    }
    match best {
        Some((_, symbol)) => FUNCTIONS.get(symbol).map_or(Found::Unknown, |&at| Found::Function(at as *const c_void)),
        None if is_known => Found::Later,
        None => Found::Unknown,
    }
}

fn table() -> impl Iterator<Item = (&'static str, i32, &'static str)> {
    TABLE.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?, words.next()?.parse().ok()?, words.next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_point_is_carried_out_or_refused_by_name() {
        let implemented: Vec<&str> = export::rows().iter().map(|(name, _)| *name).collect();
        let refused: Vec<&str> = export::unsupported::rows().iter().map(|(name, _)| *name).collect();
        for (_, _, symbol) in table() {
            let count = implemented.iter().chain(&refused).filter(|known| **known == symbol).count();
            assert_eq!(count, 1, "{symbol}");
        }
    }

    #[test]
    fn a_program_gets_the_form_of_its_version_and_of_its_default_stream() {
        let function = |name: &str| Found::Function(FUNCTIONS[name] as *const c_void);
        assert_eq!(find("cuMemAlloc", 2000, 0), function("cuMemAlloc"));
        assert_eq!(find("cuMemAlloc", 3020, LEGACY_STREAM), function("cuMemAlloc_v2"));
        assert_eq!(find("cuMemcpyHtoD", 12_000, PER_THREAD_STREAM), function("cuMemcpyHtoD_v2_ptds"));
        assert_eq!(find("cuLaunchKernelEx", 13_000, PER_THREAD_STREAM), function("cuLaunchKernelEx_ptsz"));
        assert_eq!(find("cuCtxDestroy", 13_000, PER_THREAD_STREAM), function("cuCtxDestroy_v2"));
        assert_eq!(find("cuLaunchKernelEx", 11_000, 0), Found::Later);
        assert_eq!(find("cuLaunchEverything", 13_000, 0), Found::Unknown);
    }
}
