//! GPU-using tasks, and the machine of paper 000.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    CopyDirection, CpuId, ExecutionTime, Factor, Gpu, GpuOperation, GpuWork, Nanos, Platform, Step, Task, Waiting,
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
/// uniformly. A chosen task of cost `c` gets a body of operations on any GPU of its cluster, `g = part * c` of it on the
/// GPU. Without overlap a job waits for each:
///
/// ```text
/// CPU (c - g)/2 | copy in g*transfer/2 | GPU kernel | copy out g*transfer/2 | CPU (c - g)/2
/// ```
///
/// With overlap it issues all but the last asynchronously and executes `b = overlap * (c - g)` beside them, so that it
/// may be on a CPU when their interrupts are handled (the tasks of section V used asynchronous I/O):
///
/// ```text
/// CPU (c - g - b)/2 |. . copy in . .|. . . . GPU kernel . . . .| copy out | CPU (c - g - b)/2
///                   |~~~~ CPU b ~~~~|                                       . issued, not waited for
/// ```
///
/// The paper does not place the GPU section within the job, nor say how much is executed beside it; the middle and the
/// rest of this are ours.
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
    /// Share of a GPU-using job's CPU time that is executed beside its GPU work; 0: its operations are synchronous.
    pub overlap: Decimal,
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
        overlap: Decimal::ZERO,
        interrupts: 3,
    };

    /// The same with asynchronous I/O, as those tasks used it; a third of their CPU time beside the GPU is ours.
    pub const RUNTIME_ASYNCHRONOUS: GpuUse = GpuUse { overlap: Decimal::from_thousandths(333), ..GpuUse::RUNTIME };

    /// Whether it describes something.
    pub fn validate(&self) -> Result<(), SpecError> {
        let GpuUse { share_min, share_max, part, transfer, overlap, interrupts } = *self;
        if share_min > share_max || share_max > Decimal::ONE {
            return Err(SpecError::Share { parameter: "share of GPU-using tasks", min: share_min, max: share_max });
        }
        let shares = [
            ("GPU part of a task", part),
            ("transfer part of GPU work", transfer),
            ("CPU time beside GPU work", overlap),
        ];
        for (parameter, share) in shares {
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
        self.steps(cost - gpu, gpu)
    }

    /// The body of a job that is `cpu` on a CPU and `gpu` on a GPU.
    pub(crate) fn steps(&self, cpu: Nanos, gpu: Nanos) -> Vec<Step> {
        let copies = share_of(gpu, self.transfer);
        let (copy_in, copy_out) = halves(copies);
        let copy = |direction, time: Nanos| GpuWork::Copy {
            direction,
            bytes: time.0.saturating_mul(COPY_BYTES_PER_NANO),
            time: Some(ExecutionTime::constant(time)),
        };
        let mut works = Vec::with_capacity(3);
        works.extend((!copy_in.is_zero()).then(|| copy(CopyDirection::In, copy_in)));
        works.extend((gpu > copies).then(|| GpuWork::Kernel(ExecutionTime::constant(gpu - copies))));
        works.extend((!copy_out.is_zero()).then(|| copy(CopyDirection::Out, copy_out)));

        // Beside the last operation, which is waited for, nothing is executed.
        let beside = if works.len() > 1 { share_of(cpu, self.overlap) } else { Nanos::ZERO };
        let (before, after) = halves(cpu - beside);
        let mut body = Vec::with_capacity(6);
        let cpu = |time: Nanos| (!time.is_zero()).then(|| Step::Cpu(ExecutionTime::constant(time)));
        body.extend(cpu(before));
        let operations = works.len() as u32;
        body.extend(works.into_iter().zip(0u32..).map(|(work, index)| {
            // The j-th operation from the end gets one more if j is below the remainder.
            let extra = u32::from(operations - 1 - index < self.interrupts % operations);
            let interrupts = self.interrupts / operations + extra;
            let is_waited_for = beside.is_zero() || index + 1 == operations;
            let waiting = if is_waited_for { Waiting::Synchronous } else { Waiting::Asynchronous };
            Step::Gpu(GpuOperation { gpu: None, work, waiting, interrupts, memory: Factor::ZERO })
        }));
        // Right after everything that goes on in the background was issued.
        if let Some(step) = cpu(beside) {
            body.insert(body.len() - 1, step);
        }
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

    ///   1000 ns: CPU 80 | in 75 and GPU kernel 600, beside them CPU 90 | out 75 | CPU 80
    #[test]
    fn an_overlapping_job_executes_beside_everything_but_its_last_operation() {
        let overlap = Decimal::from_thousandths(360);
        let gpu = GpuUse { part: Decimal::from_thousandths(750), overlap, ..GpuUse::RUNTIME };
        let body = gpu.body(Nanos(1_000));
        assert_eq!(operations(&body), [(75, 1), (600, 1), (75, 1)]);
        let seen: Vec<(u64, Option<Waiting>)> = body
            .iter()
            .map(|step| match step {
                Step::Gpu(operation) => (0, Some(operation.waiting)),
                step => (step.cpu_wcet().0, None),
            })
            .collect();
        let (waits, goes_on) = (Some(Waiting::Synchronous), Some(Waiting::Asynchronous));
        assert_eq!(seen, [(80, None), (0, goes_on), (0, goes_on), (90, None), (0, waits), (80, None)]);
    }

    #[test]
    fn a_single_operation_is_waited_for_whatever_the_overlap() {
        let gpu = GpuUse { transfer: Decimal::ZERO, ..GpuUse::RUNTIME_ASYNCHRONOUS };
        assert_eq!(gpu.body(Nanos(1_000)), GpuUse { overlap: Decimal::ZERO, ..gpu }.body(Nanos(1_000)));
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
                for (transfer, overlap) in [(0, 0), (200, 0), (1_000, 0), (0, 500), (200, 333), (1_000, 1_000)] {
                    let gpu = GpuUse {
                        part: Decimal::from_thousandths(part),
                        transfer: Decimal::from_thousandths(transfer),
                        overlap: Decimal::from_thousandths(overlap),
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
