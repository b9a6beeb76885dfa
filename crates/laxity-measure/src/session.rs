//! Measuring, slice by slice.

use std::collections::BTreeMap;

use laxity_model::{CpuId, Instant, MeasuredMachine, Measurement, Nanos};
use laxity_sys::clock::now;

use crate::crew::{self, Setting};
use crate::derive;
use crate::host;
use crate::options::{MeasureError, Options};
use crate::probe::Probe;
use crate::probes::{Caches, Place};
use crate::samples::Samples;

/// Measures while [`Session::step`] is called.
pub struct Session {
    options: Options,
    setting: Setting,
    probes: Vec<Probe>,
    caches: Caches,
    samples: BTreeMap<Probe, Samples>,
    /// Slices so far.
    slices: usize,
    began: Instant,
}

impl Session {
    /// Has measured nothing yet. Under `SCHED_FIFO` where this user may, which [`Session::is_real_time`] says.
    ///
    /// # Errors
    /// [`MeasureError`].
    pub fn new(options: Options) -> Result<Session, MeasureError> {
        options.check()?;
        let probes = Probe::all(options.cpus.len(), options.working_set);
        let caches = Caches::of(options.cpus[0]);
        let setting = Setting { is_real_time: crew::may_be_real_time() };
        Ok(Session { options, setting, probes, caches, samples: BTreeMap::new(), slices: 0, began: now() })
    }

    /// Whether what measures is scheduled by `SCHED_FIFO`. Otherwise whatever else runs on the machine is measured, too.
    pub fn is_real_time(&self) -> bool {
        self.setting.is_real_time
    }

    /// What the next step measures.
    pub fn next(&self) -> Probe {
        self.probes[self.slices % self.probes.len()]
    }

    /// For how long it has measured.
    pub fn elapsed(&self) -> Nanos {
        now() - self.began
    }

    /// Whether it has measured for as long as it should, and everything at least once.
    pub fn is_over(&self) -> bool {
        self.slices >= self.probes.len() && self.elapsed() >= self.options.duration
    }

    /// Measures one quantity for a few milliseconds.
    ///
    /// # Errors
    /// [`MeasureError`].
    pub fn step(&mut self) -> Result<(), MeasureError> {
        let probe = self.next();
        let cpus = &self.options.cpus;
        // Each round begins with another CPU.
        let round = self.slices / self.probes.len();
        let place = Place {
            setting: self.setting,
            cpu: cpus[round % cpus.len()],
            other: cpus[(round + 1) % cpus.len()],
            caches: &self.caches,
        };
        place.measure(probe, self.samples.entry(probe).or_default())?;
        self.slices += 1;
        // Linux takes CPUs away from real-time threads that use more than 95 % of a second, which is no overhead.
        crew::sleep(Nanos(probe.slice().0 / 8));
        Ok(())
    }

    /// What was measured until now.
    pub fn finish(self) -> Measurement {
        let quantity = |probe: &Probe| self.samples.get(probe)?.quantity(probe.to_string());
        let quantities: Vec<_> = self.probes.iter().filter_map(quantity).collect();
        let Options { cpus, working_set, worst, .. } = &self.options;
        let (worst_case, average) = derive::profiles(&quantities, *working_set, *worst);
        let machine = MeasuredMachine {
            processor: host::processor(),
            kernel: host::kernel(),
            governor: host::governor(cpus),
            cpus: cpus.iter().map(|&cpu| CpuId(cpu as u16)).collect(),
            scheduler: if self.setting.is_real_time { "SCHED_FIFO" } else { "SCHED_OTHER" }.to_owned(),
            worst: worst.name().to_owned(),
            working_set: *working_set,
            duration: self.elapsed(),
        };
        Measurement { machine, worst: worst_case, average, quantities }
    }
}
