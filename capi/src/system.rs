//! Systems: threads of several processes that one of Laxity's policies schedules.

use std::ffi::c_char;

use laxity_sched::{Config, Registry, RegistryError, Rule, System, SystemError, parse_clusters};
use laxity_sys::scheduling;

use crate::error::{CallError, Error, answer, laxity_result};
use crate::handle::{self, Handle, out, text};
use crate::lock::laxity_lock_config;

/// A system that this process is attached to: clusters of CPUs, and the tasks that a policy schedules there, by name.
/// Threads share it.
pub struct laxity_system {
    _opaque: (),
}

/// How the jobs of a cluster are ranked.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_rule {
    /// The earliest deadline first.
    LAXITY_RULE_EDF = 0,
    /// The shortest period first.
    LAXITY_RULE_RATE_MONOTONIC = 1,
    /// The shortest relative deadline first.
    LAXITY_RULE_DEADLINE_MONOTONIC = 2,
    /// The smallest given priority first.
    LAXITY_RULE_GIVEN = 3,
}

/// The CPUs of a system, and its policy. All zeros: global EDF on the CPUs that the calling thread may use.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct laxity_system_config {
    /// One of enum laxity_rule.
    rule: u32,
    /// The most tasks at a time, at most 1024; 0 means 64.
    tasks: u16,
    /// The CPUs of each cluster, as Linux numbers and lists them, with a semicolon after each cluster but the last:
    /// "0-3" is global, "0,1;2,3" clustered, "0;1;2;3" partitioned scheduling. NULL: one cluster of all CPUs that the
    /// calling thread may use.
    clusters: *const c_char,
    /// The locks that the tasks of all clusters share, at most 256; their numbers are their positions. NULL: none.
    locks: *const laxity_lock_config,
    /// How many there are.
    lock_count: usize,
}

impl Handle for laxity_system {
    type Value = System;
    const TAG: u64 = u64::from_le_bytes(*b"lax-syst");
    const NAME: &'static str = "system";
}

impl laxity_system_config {
    /// # Safety
    /// `clusters` is null or ends with NUL, and as many locks can be read as are said to be there.
    unsafe fn config(&self) -> Result<Config, Error> {
        const RULES: [(laxity_rule, Rule); 4] = [
            (laxity_rule::LAXITY_RULE_EDF, Rule::Edf),
            (laxity_rule::LAXITY_RULE_RATE_MONOTONIC, Rule::RateMonotonic),
            (laxity_rule::LAXITY_RULE_DEADLINE_MONOTONIC, Rule::DeadlineMonotonic),
            (laxity_rule::LAXITY_RULE_GIVEN, Rule::Given),
        ];
        let unknown = || CallError::Value { argument: "rule", value: self.rule, of: "enum laxity_rule" };
        let rule = RULES.iter().find(|(number, _)| *number as u32 == self.rule).ok_or_else(unknown)?.1;
        let clusters = if self.clusters.is_null() {
            let usable = scheduling::usable_cpus().map_err(CallError::Cpus)?;
            // Linux has no CPU that is numbered higher.
            vec![usable.into_iter().map(|cpu| u16::try_from(cpu).unwrap_or(u16::MAX)).collect()]
        } else {
            // SAFETY: not null (checked above), and otherwise as the caller promises.
            let text = unsafe { text(self.clusters, "clusters") }?;
            parse_clusters(text).map_err(|error| RegistryError::Other(SystemError::Config(error)))?
        };
        let default = Config::new(rule, clusters);
        let tasks = if self.tasks == 0 { default.tasks } else { self.tasks };
        // SAFETY: as the caller promises.
        let locks = unsafe { handle::slice(self.locks, self.lock_count, "locks") }?;
        let cpus = default.clusters.iter().map(Vec::len).sum();
        let locks = locks.iter().map(|lock| lock.config(cpus)).collect::<Result<_, _>>()?;
        Ok(Config { tasks, locks, ..default })
    }
}

/// Names in `directory`; in /dev/shm if it is null.
///
/// # Safety
/// `directory` is null or ends with NUL.
unsafe fn registry(directory: *const c_char) -> Result<Registry, Error> {
    if directory.is_null() {
        return Ok(Registry::default());
    }
    // SAFETY: not null, and otherwise as the caller promises.
    Ok(Registry::at(unsafe { text(directory, "directory") }?))
}

/// Calls `make` with the registry in `directory` and the name, and writes the result to `system`.
///
/// # Safety
/// `system` can be written, `directory` is null or ends with NUL, and `name` ends with NUL.
unsafe fn open(
    directory: *const c_char,
    name: *const c_char,
    system: *mut *mut laxity_system,
    make: impl FnOnce(&Registry, &str) -> Result<System, Error>,
) -> laxity_result {
    answer(|| {
        // SAFETY: as the caller promises.
        let system = unsafe { out(system, "system") }?;
        *system = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        let (registry, name) = unsafe { (registry(directory)?, text(name, "name")?) };
        *system = handle::make(make(&registry, name)?);
        Ok(())
    })
}

/// Creates the system called `name` in `directory` (NULL: /dev/shm), or attaches to it if it is there already: for
/// processes that all know its configuration and start in any order. LAXITY_ERROR_DIFFERENT if it is configured
/// otherwise, LAXITY_ERROR_CONFIG if it cannot be. It ends with the last process that uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_system_create_or_attach(
    directory: *const c_char,
    name: *const c_char,
    config: *const laxity_system_config,
    system: *mut *mut laxity_system,
) -> laxity_result {
    let make = |registry: &Registry, name: &str| {
        // SAFETY: the caller promises that `config` can be read unless it is null.
        let config = unsafe { config.as_ref() }.ok_or(CallError::Null { argument: "config" })?;
        // SAFETY: the caller promises that its texts end with NUL.
        Ok(registry.create_or_attach(name, &unsafe { config.config() }?)?)
    };
    // SAFETY: the caller promises that the texts end with NUL and that `system` can be written.
    unsafe { open(directory, name, system, make) }
}

/// Attaches to the system called `name` in `directory` (NULL: /dev/shm), however it is configured.
/// LAXITY_ERROR_NO_SYSTEM if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_system_attach(
    directory: *const c_char,
    name: *const c_char,
    system: *mut *mut laxity_system,
) -> laxity_result {
    let make = |registry: &Registry, name: &str| Ok(registry.attach(name)?);
    // SAFETY: the caller promises that the texts end with NUL and that `system` can be written.
    unsafe { open(directory, name, system, make) }
}

/// Releases the handle of a system; its tasks go on. Sets `*system` to NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_system_release(system: *mut *mut laxity_system) -> laxity_result {
    // SAFETY: the caller promises that the handle is not used any more.
    answer(|| unsafe { handle::take(system) }.map(drop))
}

/// Removes systems in `directory` (NULL: /dev/shm) all of whose processes were killed. Writes their number to `removed`,
/// which may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_system_gc(directory: *const c_char, removed: *mut usize) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `directory` is null or ends with NUL.
        let names = unsafe { registry(directory) }?.gc()?;
        // SAFETY: the caller promises that `removed` can be written unless it is null.
        if let Some(removed) = unsafe { removed.as_mut() } {
            *removed = names.len();
        }
        Ok(())
    })
}
