//! How each quantity is measured: one slice of it, on given CPUs.

mod cache;
mod interruption;
mod lock;
mod memory;
mod switch;
mod timer;
mod wakeup;

use laxity_model::Nanos;
use laxity_sys::clock::now;

pub(crate) use cache::Caches;

use crate::crew::{Level, Part, Setting, Slice, Work, work_together};
use crate::options::MeasureError;
use crate::probe::Probe;
use crate::samples::Samples;

/// Where a slice is measured, and with what.
pub(crate) struct Place<'a> {
    pub setting: Setting,
    /// Where what is measured happens.
    pub cpu: usize,
    /// Where it comes from; the same if there is only one.
    pub other: usize,
    pub caches: &'a Caches,
}

impl Place<'_> {
    /// Measures `probe` for a slice.
    pub fn measure(&self, probe: Probe, samples: &mut Samples) -> Result<(), MeasureError> {
        match probe {
            Probe::Clock => self.repeat(probe, || Ok(()), samples),
            Probe::TimerLatencyIdle => timer::latency(self, probe, false, samples),
            Probe::TimerLatencyBusy => timer::latency(self, probe, true, samples),
            Probe::Yield => self.repeat(probe, give_way, samples),
            Probe::YieldSwitch => switch::measure(self, probe, samples),
            Probe::WakeupSame => wakeup::measure(self, probe, self.cpu, false, samples),
            Probe::WakeupCross => wakeup::measure(self, probe, self.other, false, samples),
            Probe::WakeupCrossBusy => wakeup::measure(self, probe, self.other, true, samples),
            Probe::Interruption => interruption::measure(self, probe, samples),
            Probe::TimerArm => timer::arm(self, probe, samples),
            Probe::LockUncontended => lock::uncontended(self, probe, samples),
            Probe::LockHandover => lock::handover(self, probe, samples),
            Probe::Copy(bytes) => memory::copy(self, probe, bytes, samples),
            Probe::CachePreemption(bytes) => self.caches.preemption(self, probe, bytes, samples),
            Probe::CacheMigration(bytes) => self.caches.migration(self, probe, bytes, samples),
        }
    }

    /// Samples how long `call` takes, again and again, by one thread of high priority.
    fn repeat(&self, probe: Probe, call: impl Fn() -> Work + Sync, samples: &mut Samples) -> Result<(), MeasureError> {
        self.alone(probe, samples, &|slice| {
            while !slice.is_over() {
                let begin = now();
                call()?;
                slice.take(now() - begin);
            }
            Ok(())
        })
    }

    /// One thread of high priority.
    fn alone(
        &self,
        probe: Probe,
        samples: &mut Samples,
        work: &(dyn Fn(&Slice) -> Work + Sync),
    ) -> Result<(), MeasureError> {
        self.together(probe, &[Part { cpu: self.cpu, level: Level::High, work }], samples)
    }

    fn together(&self, probe: Probe, parts: &[Part<'_>], samples: &mut Samples) -> Result<(), MeasureError> {
        work_together(self.setting, probe.slice(), parts, samples)
    }
}

fn give_way() -> Work {
    std::thread::yield_now();
    Ok(())
}

/// What `whole` is more than `part`; nothing if it is less.
fn beyond(whole: Nanos, part: Nanos) -> Nanos {
    Nanos(whole.0.saturating_sub(part.0))
}
