//! The CPUs that a thread may use.

use std::io;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// How many CPUs a mask can name: 0 to one less.
pub const CPUS_MAX: usize = CpuSet::MAX_CPU;
/// Numbers of 64 bits of a mask.
pub const WORDS: usize = CPUS_MAX / 64;

/// A set of CPUs, numbered as Linux does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuMask([u64; WORDS]);

impl CpuMask {
    /// No CPU.
    pub const EMPTY: CpuMask = CpuMask([0; WORDS]);

    /// These CPUs. Panics if one is not below [`CPUS_MAX`].
    pub fn of(cpus: impl IntoIterator<Item = usize>) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        for cpu in cpus {
            assert!(cpu < CPUS_MAX, "CPU {cpu} is not below {CPUS_MAX}");
            mask.0[cpu / 64] |= 1 << (cpu % 64);
        }
        mask
    }

    /// Those that the thread of this number may use.
    ///
    /// # Errors
    /// If there is no such thread.
    pub fn of_thread(thread: u32) -> io::Result<CpuMask> {
        let set = sched_getaffinity(pid(thread)?)?;
        Ok(CpuMask::of((0..CPUS_MAX).filter(|&cpu| set.is_set(cpu))))
    }

    /// Lets the thread of this number use these CPUs only. Linux ignores those that there are not.
    ///
    /// # Errors
    /// If there is no such thread, this user may not, or the thread may use none of them.
    pub fn give_to(&self, thread: u32) -> io::Result<()> {
        let mut set = CpuSet::new();
        self.cpus().for_each(|cpu| set.set(cpu));
        Ok(sched_setaffinity(pid(thread)?, &set)?)
    }

    /// The CPUs, ascending.
    pub fn cpus(&self) -> impl Iterator<Item = usize> + '_ {
        (0..CPUS_MAX).filter(|&cpu| self.contains(cpu))
    }

    /// Whether it names `cpu`.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// As numbers.
    pub fn to_words(self) -> [u64; WORDS] {
        self.0
    }

    /// What [`CpuMask::to_words`] made numbers of.
    pub fn from_words(words: [u64; WORDS]) -> CpuMask {
        CpuMask(words)
    }
}

fn pid(thread: u32) -> io::Result<Option<Pid>> {
    let number = i32::try_from(thread).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok(Some(Pid::from_raw(number).ok_or(io::ErrorKind::InvalidInput)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::current_thread;

    #[test]
    fn a_thread_uses_the_cpus_that_it_was_given() {
        let ours = current_thread();
        let before = CpuMask::of_thread(ours).expect("it is this one");
        let first = before.cpus().next().expect("it runs somewhere");
        CpuMask::of([first]).give_to(ours).expect("it may use it");
        assert_eq!(CpuMask::of_thread(ours).expect("it is this one"), CpuMask::of([first]));
        before.give_to(ours).expect("it might before");
        assert_eq!(CpuMask::from_words(before.to_words()), before);
        assert!(CpuMask::EMPTY.give_to(ours).is_err() && CpuMask::of([0]).give_to(0).is_err());
    }
}
