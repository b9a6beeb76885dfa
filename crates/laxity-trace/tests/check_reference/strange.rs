//! Records of every kind, with any values.

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind, TaskId};
use laxity_trace::{Event, Record};
use proptest::prelude::*;

fn any_job() -> impl Strategy<Value = JobId> {
    // Mostly known tasks and small indices, so that guesses come true and fail; sometimes anything.
    let task = prop_oneof![9 => 0..2u32, 1 => any::<u32>()];
    let index = prop_oneof![9 => 0..3u32, 1 => any::<u32>()];
    (task, index).prop_map(|(task, index)| JobId { task: TaskId(task), index })
}

fn any_event() -> impl Strategy<Value = Event> {
    let cpu = || prop_oneof![9 => 0..4u16, 1 => any::<u16>()].prop_map(CpuId);
    let kind = || (0..OverheadKind::ALL.len()).prop_map(|index| OverheadKind::ALL[index]);
    let span = || (any::<u64>(), 0..64u32).prop_map(|(span, shift)| Nanos(span >> shift));
    prop_oneof![
        (any_job(), any::<u64>()).prop_map(|(job, d)| Event::Release { job, deadline: Instant(d) }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Ready { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Link { job: Some(job), cpu }),
        cpu().prop_map(|cpu| Event::Link { job: None, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Dispatch { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Preempt { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Suspend { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Resume { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Complete { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::NonPreemptiveBegin { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::NonPreemptiveEnd { job, cpu }),
        (cpu(), kind(), span()).prop_map(|(cpu, kind, duration)| Event::Overhead { cpu, kind, duration }),
        (cpu(), span()).prop_map(|(cpu, duration)| Event::LockWait { cpu, duration }),
        (any_job(), cpu(), kind(), span()).prop_map(|(job, cpu, kind, duration)| Event::CacheDelay {
            job,
            cpu,
            kind,
            duration
        }),
        (cpu(), cpu(), span()).prop_map(|(from, to, latency)| Event::Ipi { from, to, latency }),
        Just(Event::End),
    ]
}

/// Records that no scheduler would write.
pub fn any_records() -> impl Strategy<Value = Vec<Record>> {
    let time = prop_oneof![3 => 0..3u64, 1 => any::<u64>()];
    prop::collection::vec((time, any_event()).prop_map(|(at, event)| Record { at: Instant(at), event }), 0..60)
}
