//! Interrupts of devices on their way to their bottom halves.

use std::collections::BTreeMap;

use laxity_model::{CpuId, JobId, OverheadKind, TaskId};

use crate::DeviceId;

/// What an interrupt is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The device that raised it.
    pub device: DeviceId,
    /// The owner: the job whose operation completed. `None`: anonymous.
    pub owner: Option<JobId>,
}

impl Source {
    fn device_and_task(self) -> (DeviceId, Option<TaskId>) {
        (self.device, self.owner.map(|owner| owner.task))
    }
}

/// The interrupts whose bottom halves did not begin.
///
/// Overheads do not name the interrupt that they handle; their order does. Top halves run in the order in which the
/// interrupts were raised on their CPU, and a bottom half is queued right after its top half (paper 000, Figs. 10 and
/// 11). A top half that takes no time leaves no record: then the bottom half shows that it is over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupts {
    /// Raised, and the top half did not begin; by CPU and order.
    raised: BTreeMap<(CpuId, u64), Source>,
    /// The same by source.
    raised_by: BTreeMap<(Source, u64), CpuId>,
    order: u64,
    /// How many have a top half and no bottom half yet, by device and the owner's task: one bottom half may stand for a
    /// burst of interrupts, so that single ones may never be heard of again.
    handled: BTreeMap<(DeviceId, Option<TaskId>), u64>,
    /// The interrupt whose top half ran last, by CPU.
    last_handled: BTreeMap<CpuId, Source>,
}

impl Interrupts {
    /// The interrupt that an overhead of this kind handles, if it begins now on `cpu`.
    pub fn handled_by(&self, cpu: CpuId, kind: OverheadKind) -> Option<Source> {
        match kind {
            OverheadKind::TopHalf => self.raised.range((cpu, 0)..=(cpu, u64::MAX)).next().map(|(_, &source)| source),
            OverheadKind::ThreadRelease | OverheadKind::PaiEnqueue => self.last_handled.get(&cpu).copied(),
            _ => None,
        }
    }

    pub(super) fn raise(&mut self, cpu: CpuId, source: Source) {
        self.order += 1;
        self.raised.insert((cpu, self.order), source);
        self.raised_by.insert((source, self.order), cpu);
    }

    /// The top half of the first interrupt raised on `cpu` begins.
    pub(super) fn begin_top_half(&mut self, cpu: CpuId) {
        let first = self.raised.range((cpu, 0)..=(cpu, u64::MAX)).next().map(|(&place, &source)| (place, source));
        let Some((place, source)) = first else {
            self.last_handled.remove(&cpu);
            return;
        };
        self.raised.remove(&place);
        self.raised_by.remove(&(source, place.1));
        self.last_handled.insert(cpu, source);
        *self.handled.entry(source.device_and_task()).or_default() += 1;
    }

    /// A bottom half was queued to a thread or begins, not always on the CPU that the interrupt was routed to.
    pub(super) fn begin_bottom_half(&mut self, source: Source) {
        if let Some(count) = self.handled.get_mut(&source.device_and_task()).filter(|count| **count > 0) {
            *count -= 1;
            return;
        }
        let raised = self.raised_by.range((source, 0)..=(source, u64::MAX)).next().map(|(&place, &cpu)| (place, cpu));
        if let Some((place, cpu)) = raised {
            self.raised_by.remove(&place);
            self.raised.remove(&(cpu, place.1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: CpuId = CpuId(0);

    fn from(device: u16) -> Source {
        Source { device: DeviceId(device), owner: None }
    }

    #[test]
    fn a_bottom_half_takes_no_interrupt_that_was_raised_after_its_top_half() {
        let mut interrupts = Interrupts::default();
        interrupts.raise(CPU, from(0));
        interrupts.begin_top_half(CPU);
        interrupts.raise(CPU, from(0));
        interrupts.begin_bottom_half(from(0));
        assert_eq!(interrupts.handled_by(CPU, OverheadKind::TopHalf), Some(from(0)), "the second is still raised");
    }

    #[test]
    fn a_bottom_half_whose_top_half_left_no_record_takes_its_interrupt_from_any_cpu() {
        let mut interrupts = Interrupts::default();
        interrupts.raise(CPU, from(0));
        interrupts.raise(CPU, from(1));
        interrupts.begin_bottom_half(from(0));
        assert_eq!(interrupts.handled_by(CPU, OverheadKind::TopHalf), Some(from(1)));
    }

    #[test]
    fn memory_does_not_grow_with_interrupts_whose_bottom_halves_are_never_heard_of() {
        let mut interrupts = Interrupts::default();
        for index in 0..100 {
            let owner = Some(JobId { task: TaskId(0), index });
            interrupts.raise(CPU, Source { device: DeviceId(0), owner });
            interrupts.begin_top_half(CPU);
        }
        assert_eq!((interrupts.raised.len(), interrupts.raised_by.len(), interrupts.handled.len()), (0, 0, 1));
    }
}
