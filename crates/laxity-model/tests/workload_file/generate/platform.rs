//! Arbitrary platforms, schedulers and ways to manage GPUs.

use laxity_model::{
    BandwidthLock, BestEffortRule, BestEffortScheduler, Contention, ContentionPoint, CpuId, Device, EngineOrder,
    Factor, Gpu, GpuArbitration, GpuManagement, GpuSync, InterruptHandling, LockHeed, Memory, MemoryRegulator,
    MigrationPath, Nanos, OverheadKind, OverheadProfile, OverheadTable, Platform, RegulatorPhase, Scheduler, Server,
    ServerKind, ThreadPriority, TokenHold,
};

use super::Source;

impl Source {
    pub(super) fn platform(&mut self) -> Platform {
        let cpus = self.below(2 * self.size + 1) as usize + 1;
        let mut platform = Platform::identical(cpus);
        if self.chance() {
            let mut all = platform.clusters.remove(0);
            if self.chance() {
                self.shuffle(&mut all);
            }
            while !all.is_empty() {
                let rest = all.split_off(self.below(all.len() as u64) as usize + 1);
                platform.clusters.push(std::mem::replace(&mut all, rest));
            }
        }
        platform.tick = self.span(30);
        platform.quantum = Nanos(platform.tick.0 * (1 + self.below(5)));
        platform.overheads = self.overheads();
        platform.gpus = self.several(|source, index| source.gpu(index, cpus));
        for gpu in &mut platform.gpus {
            gpu.cluster = self.below(platform.clusters.len() as u64) as usize;
            if self.chance() {
                gpu.interrupt_cpus = platform.clusters[gpu.cluster].clone();
            }
        }
        platform.memory = self.memory();
        platform.devices = self.several(|source, index| source.device(index, &platform));
        platform
    }

    pub(super) fn device(&mut self, index: usize, platform: &Platform) -> Device {
        let cluster = self.below(platform.clusters.len() as u64) as usize;
        Device {
            name: self.name(index),
            cluster,
            arrival: self.arrival(),
            period: self.span(57),
            top_half: self.execution(),
            bottom_half: self.execution(),
            interrupt_cpus: match self.chance() {
                true => platform.clusters[cluster].clone(),
                false => vec![CpuId(self.below(platform.cpus as u64) as u16)],
            },
            server: self.maybe(Self::server),
        }
    }

    pub(super) fn server(&mut self) -> Server {
        let period = self.span(40);
        Server {
            kind: self.pick(&[ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic]),
            budget: Nanos(self.rng.between(1, period.0)),
            period,
            priority: Some(self.below(1 << 32) as u32),
        }
    }

    pub(super) fn gpu_management(&mut self) -> GpuManagement {
        let gpusync = self.gpusync();
        let arbitration = self.pick(&[
            GpuArbitration::Driver,
            GpuArbitration::DriverSpinning,
            GpuArbitration::Semaphore,
            GpuArbitration::KFmlp { length_aware: false },
            GpuArbitration::KFmlp { length_aware: true },
            GpuArbitration::GpuSync(GpuSync::DEFAULT),
            GpuArbitration::GpuSync(gpusync),
        ]);
        let threads = self.count();
        let handling = self.pick(&[
            InterruptHandling::Linux,
            InterruptHandling::PreemptRt(ThreadPriority::Low),
            InterruptHandling::PreemptRt(ThreadPriority::High),
            InterruptHandling::ProcessAware,
            InterruptHandling::Klmirqd { threads: None },
            InterruptHandling::Klmirqd { threads: Some(threads) },
        ]);
        let [top_half, bottom_half, callback] = std::array::from_fn(|_| self.maybe(Self::execution));
        let bandwidth_lock =
            self.maybe(|source| BandwidthLock { call: source.span_or_zero_up_to(40), budget: source.rate() });
        GpuManagement { arbitration, handling, top_half, bottom_half, callback, bandwidth_lock }
    }

    /// A GPU has at least as much room in its queues as there may be requests.
    pub(super) fn gpusync(&mut self) -> GpuSync {
        let (tokens, fifo_length) = (self.count(), self.maybe(Self::count));
        let room = u64::from(tokens) * u64::from(fifo_length.unwrap_or(u32::MAX));
        let migration = self.maybe(Self::span_or_zero);
        let paths: &[MigrationPath] =
            if migration.is_some() { &[MigrationPath::Peer, MigrationPath::Host] } else { &[MigrationPath::Peer] };
        GpuSync {
            tokens,
            fifo_length,
            fifo_requests: self.maybe(|source| source.rng.between(1, room.min(1 << 30)) as u32),
            engine_order: self.pick(&[EngineOrder::Fifo, EngineOrder::Priority]),
            chunk: self.maybe(|source| source.rng.next_u64().max(1)),
            hold: self.pick(&[TokenHold::Job, TokenHold::Section]),
            migration,
            migration_path: self.pick(paths),
        }
    }

    fn span_or_zero_up_to(&mut self, bits: u64) -> Nanos {
        if self.chance() { Nanos::ZERO } else { self.span(bits) }
    }

    /// Bytes a second, every magnitude equally likely.
    pub(super) fn rate(&mut self) -> u64 {
        (self.rng.next_u64() >> self.below(64)).max(1)
    }

    fn memory(&mut self) -> Memory {
        let mut points = Vec::new();
        if self.chance() {
            points.push(ContentionPoint { traffic: 0, factor: Factor::ONE });
            for _ in 0..=self.below(4) {
                let ContentionPoint { traffic, factor } = points[points.len() - 1];
                let (traffic, factor) = (traffic + self.span(40).0, Factor(factor.0 + self.below(1_000_000)));
                points.push(ContentionPoint { traffic, factor });
            }
        }
        let period = self.span(40);
        let regulator = MemoryRegulator {
            period,
            latency: self.span_or_zero(),
            interrupt: Nanos(self.below(period.0)),
            phase: self.pick(&[RegulatorPhase::Aligned, RegulatorPhase::Staggered]),
            heed: self.pick(&[LockHeed::Period, LockHeed::AtOnce]),
        };
        Memory { contention: Contention { points }, regulator }
    }

    pub(super) fn best_effort_scheduler(&mut self) -> BestEffortScheduler {
        let punishment = Factor(self.below(1_000_000_001));
        let latency = self.maybe(|source| source.span(40));
        BestEffortScheduler {
            rule: self.pick(&[BestEffortRule::Cfs, BestEffortRule::Tfs { punishment }]),
            latency,
            min_granularity: self.maybe(|source| Nanos(1 + source.below(latency.map_or(1 << 40, |latency| latency.0)))),
            wakeup_granularity: self.maybe(Source::span_or_zero),
        }
    }

    /// Of something that there is at least one of.
    pub(super) fn count(&mut self) -> u32 {
        1 + self.below(u64::from(u32::MAX)) as u32
    }

    pub(super) fn gpu(&mut self, index: usize, cpus: usize) -> Gpu {
        let mut interrupt_cpus: Vec<CpuId> = (0..cpus).map(|cpu| CpuId(cpu as u16)).collect();
        self.shuffle(&mut interrupt_cpus);
        interrupt_cpus.truncate(self.below(cpus as u64) as usize + 1);
        Gpu {
            name: self.name(index),
            cluster: 0,
            copy_engines: 1 + self.below(2) as u8,
            bandwidth: self.span(40).0,
            latency: self.span_or_zero(),
            interrupt_cpus,
        }
    }

    pub(super) fn overheads(&mut self) -> OverheadProfile {
        match self.below(3) {
            0 => OverheadProfile::zero(),
            1 => {
                let name = self.pick(&OverheadProfile::published_names());
                OverheadProfile::published(&name).expect("a published name")
            }
            _ => OverheadProfile {
                name: self.pick(&["none", "mine", "elliott2012-klmirqd", "brandenburg2009-worst"]).to_owned(),
                tables: OverheadKind::ALL.map(|_| self.overhead_table()),
            },
        }
    }

    pub(super) fn overhead_table(&mut self) -> OverheadTable {
        if self.chance() {
            return OverheadTable::Constant(self.span_or_zero());
        }
        let mut tasks = 0;
        let points = (0..=self.below(4)).map(|_| {
            tasks += 1 + self.below(1_000) as u32;
            (tasks, self.span(50).0)
        });
        OverheadTable::Points(points.collect())
    }

    pub(super) fn scheduler(&mut self, cpus: usize) -> Scheduler {
        let scope = self.pick(&["G", "C", "P"]);
        let rule = self.pick(&["EDF", "RM", "DM", "FP"]);
        let stagger = self.pick(&["", "S-"]);
        let queue = self.pick(&["C", "F", "H"]);
        let invocation = self.pick(&["E", "Q"]);
        // A platform of one CPU cannot spare it.
        let interrupts = if cpus < 2 { "m" } else { self.pick(&["m", "1"]) };
        let name = format!("{scope}-{rule}/{stagger}{queue}{invocation}{interrupts}");
        Scheduler { coarse_lock: self.chance(), ..name.parse().expect("a scheduler") }
    }
}
