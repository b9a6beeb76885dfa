//! GPU-using tasks, and the machine of paper 000.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    CopyDirection, CpuId, ExecutionTime, Gpu, GpuOperation, GpuWork, Nanos, Platform, Step, Task, Waiting,
};

use crate::utilization::uniform;
use crate::{Decimal, SpecError, Utilization};

/// Bytes a nanosecond that sizes the copies of generated tasks; the copies state their duration as well.
const COPY_BYTES_PER_NANO: u64 = 4;

/// More interrupts of one job than this are a mistake.
pub(crate) const INTERRUPTS_MAX: u32 = 1_000;

/// Which tasks of a set use a GPU, and how much of their execution it is. Source: paper 000, sections V and VII.
///
/// The share is drawn uniformly from its band, rounded to the nearest number of tasks, and that many are chosen
/// uniformly. A chosen task of cost `c` gets a body of synchronous operations on any GPU of its cluster:
///
/// ```text
/// CPU (c - g)/2 | copy in g*transfer/2 | GPU kernel | copy out g*transfer/2 | CPU (c - g)/2        g = part * c
/// ```
///
/// The paper does not place the GPU section within the job; the middle is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GpuUse {
    /// Smallest share of GPU-using tasks.
    pub share_min: Decimal,
    /// Largest share of GPU-using tasks.
    pub share_max: Decimal,
    /// Share of a GPU-using task's execution that is on the GPU, copies included.
    pub part: Decimal,
    /// Share of the GPU part that is data transfer, half of it each way.
    pub transfer: Decimal,
    /// Interrupts a job raises, spread evenly over its operations, the later ones first to get one more.
    pub interrupts: u32,
}

impl GpuUse {
    /// The task sets paper 000 (section V) ran: 20 to 30 % of the tasks, 80 % of their execution, of which 20 % are
    /// copies. The paper gives no number of interrupts: one for each operation.
    pub const RUNTIME: GpuUse = GpuUse {
        share_min: Decimal::from_thousandths(200),
        share_max: Decimal::from_thousandths(300),
        part: Decimal::from_thousandths(800),
        transfer: Decimal::from_thousandths(200),
        interrupts: 3,
    };

    /// Whether it describes something.
    pub fn validate(&self) -> Result<(), SpecError> {
        let GpuUse { share_min, share_max, part, transfer, interrupts } = *self;
        if share_min > share_max || share_max > Decimal::ONE {
            return Err(SpecError::Share { parameter: "share of GPU-using tasks", min: share_min, max: share_max });
        }
        for (parameter, share) in [("GPU part of a task", part), ("transfer part of GPU work", transfer)] {
            if share > Decimal::ONE {
                return Err(SpecError::Share { parameter, min: share, max: share });
            }
        }
        if interrupts > INTERRUPTS_MAX {
            return Err(SpecError::Interrupts { interrupts });
        }
        Ok(())
    }

    /// Gives GPU bodies to some of `tasks`, which must have CPU bodies.
    pub(crate) fn apply(&self, tasks: &mut [Task], rng: &mut SplitMix64) {
        let share = uniform(self.share_min, self.share_max, rng);
        for index in choose(round_share(tasks.len(), share), tasks.len(), rng) {
            tasks[index].body = self.body(tasks[index].wcet());
        }
    }

    fn body(&self, cost: Nanos) -> Vec<Step> {
        let gpu = share_of(cost, self.part);
        let copies = share_of(gpu, self.transfer);
        let (copy_in, copy_out) = halves(copies);
        let (before, after) = halves(cost - gpu);
        let copy = |direction, time: Nanos| GpuWork::Copy {
            direction,
            bytes: time.0.saturating_mul(COPY_BYTES_PER_NANO),
            time: Some(ExecutionTime::constant(time)),
        };
        let mut works = Vec::with_capacity(3);
        works.extend((!copy_in.is_zero()).then(|| copy(CopyDirection::In, copy_in)));
        works.extend((gpu > copies).then(|| GpuWork::Kernel(ExecutionTime::constant(gpu - copies))));
        works.extend((!copy_out.is_zero()).then(|| copy(CopyDirection::Out, copy_out)));

        let mut body = Vec::with_capacity(5);
        let cpu = |time: Nanos| (!time.is_zero()).then(|| Step::Cpu(ExecutionTime::constant(time)));
        body.extend(cpu(before));
        let operations = works.len() as u32;
        body.extend(works.into_iter().zip(0u32..).map(|(work, index)| {
            // The j-th operation from the end gets one more if j is below the remainder.
            let extra = u32::from(operations - 1 - index < self.interrupts % operations);
            let interrupts = self.interrupts / operations + extra;
            Step::Gpu(GpuOperation { gpu: None, work, waiting: Waiting::Synchronous, interrupts })
        }));
        body.extend(cpu(after));
        body
    }
}

/// The machine of paper 000 (section V): two NUMA nodes of six CPUs and four GPUs (GTX 470, one copy engine). A GPU
/// interrupts any CPU of its node. The rate of copies is the one generated task sets assume, 4 GB/s, without latency.
pub fn klmirqd_platform() -> Platform {
    let clusters: Vec<Vec<CpuId>> = (0..2).map(|node| (6 * node..6 * node + 6).map(CpuId).collect()).collect();
    let gpus = (0..8)
        .map(|index| Gpu {
            name: format!("gpu{index}"),
            cluster: index / 4,
            copy_engines: 1,
            bandwidth: COPY_BYTES_PER_NANO * 1_000_000_000,
            latency: Nanos::ZERO,
            interrupt_cpus: clusters[index / 4].clone(),
        })
        .collect();
    Platform { clusters, gpus, ..Platform::identical(12) }
}

/// `floor(span * share)`; at most `span`, as `share <= 1`.
fn share_of(span: Nanos, share: Decimal) -> Nanos {
    let scaled = u128::from(span.0) * u128::from(share.billionths()) / u128::from(Decimal::ONE.billionths());
    Nanos(scaled as u64)
}

/// Two parts of a span that differ by at most 1 ns, the longer one first.
fn halves(span: Nanos) -> (Nanos, Nanos) {
    let second = Nanos(span.0 / 2);
    (span - second, second)
}

/// `count * share`, rounded to the nearest integer, ties up.
fn round_share(count: usize, share: Utilization) -> usize {
    let half = u128::from(Utilization::ONE.units() / 2);
    ((count as u128 * u128::from(share.units()) + half) >> Utilization::BITS) as usize
}

/// `chosen` different indices below `count`, every subset equally likely (the start of a Fisher-Yates shuffle).
fn choose(chosen: usize, count: usize, rng: &mut SplitMix64) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..count).collect();
    for position in 0..chosen {
        let other = position + rng.below((count - position) as u64) as usize;
        indices.swap(position, other);
    }
    indices.truncate(chosen);
    indices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations(body: &[Step]) -> Vec<(u64, u32)> {
        body.iter()
            .filter_map(|step| match step {
                Step::Gpu(GpuOperation { work: GpuWork::Kernel(time), interrupts, .. })
                | Step::Gpu(GpuOperation { work: GpuWork::Copy { time: Some(time), .. }, interrupts, .. }) => {
                    Some((time.wcet.0, *interrupts))
                }
                _ => None,
            })
            .collect()
    }

    ///   1000 ns: CPU 125 | in 75 | GPU kernel 600 | out 75 | CPU 125
    #[test]
    fn a_gpu_job_computes_copies_runs_copies_and_computes() {
        let gpu = GpuUse { part: Decimal::from_thousandths(750), ..GpuUse::RUNTIME };
        let body = gpu.body(Nanos(1_000));
        assert_eq!(operations(&body), [(75, 1), (600, 1), (75, 1)]);
        assert!(matches!(&body[0], Step::Cpu(time) if time.wcet == Nanos(125)));
        assert!(matches!(&body[4], Step::Cpu(time) if time.wcet == Nanos(125)));
        assert_eq!(body.len(), 5);
        let Step::Gpu(GpuOperation { work: GpuWork::Copy { direction, bytes, .. }, .. }) = &body[1] else { panic!() };
        assert_eq!((*direction, *bytes), (CopyDirection::In, 300));
    }

    #[test]
    fn interrupts_are_spread_with_the_last_operation_first() {
        let interrupts = |interrupts| {
            let body = GpuUse { interrupts, ..GpuUse::RUNTIME }.body(Nanos(1_000));
            operations(&body).into_iter().map(|(_, interrupts)| interrupts).collect::<Vec<_>>()
        };
        assert_eq!(interrupts(0), [0, 0, 0]);
        assert_eq!(interrupts(1), [0, 0, 1]);
        assert_eq!(interrupts(3), [1, 1, 1]);
        assert_eq!(interrupts(5), [1, 2, 2]);
        assert_eq!(interrupts(6), [2, 2, 2]);
    }

    #[test]
    fn no_step_is_empty_and_no_nanosecond_is_lost() {
        for cost in 1..200 {
            for part in [0, 1, 500, 750, 999, 1_000] {
                for transfer in [0, 200, 1_000] {
                    let gpu = GpuUse {
                        part: Decimal::from_thousandths(part),
                        transfer: Decimal::from_thousandths(transfer),
                        ..GpuUse::RUNTIME
                    };
                    let body = gpu.body(Nanos(cost));
                    let on_gpu: u64 = operations(&body).iter().map(|&(time, _)| time).sum();
                    let on_cpu: u64 = body.iter().map(|step| step.cpu_wcet().0).sum();
                    assert_eq!(on_gpu + on_cpu, cost);
                    assert!(operations(&body).iter().all(|&(time, _)| time > 0));
                    assert!(body.iter().all(|step| !matches!(step, Step::Cpu(time) if time.wcet.is_zero())));
                }
            }
        }
    }

    #[test]
    fn the_machine_of_paper_000_has_six_cpus_and_four_gpus_a_node() {
        let platform = klmirqd_platform();
        assert_eq!((platform.cpus, platform.gpus.len(), platform.clusters.len()), (12, 8, 2));
        assert_eq!(platform.clusters[1], (6..12).map(CpuId).collect::<Vec<_>>());
        assert_eq!(platform.gpus[3].interrupt_cpus, platform.clusters[0]);
        assert_eq!(platform.gpus[4].interrupt_cpus, platform.clusters[1]);
    }

    #[test]
    fn every_subset_is_chosen_alike() {
        let mut rng = SplitMix64::new(3);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..10_000 {
            let mut subset = choose(2, 5, &mut rng);
            subset.sort_unstable();
            *seen.entry(subset).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 10);
        assert!(seen.values().all(|&count| (880..1_120).contains(&count)), "{seen:?}");
    }
}
