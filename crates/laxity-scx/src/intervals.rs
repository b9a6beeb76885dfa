//! How long the scheduler in the kernel takes, as it writes that down: `struct laxity_interval` of `bpf/measure.h`.

use laxity_model::{CpuId, Instant, Nanos, OverheadKind};
use laxity_trace::{Event, Record};
use serde::{Deserialize, Serialize};

use crate::layout::Fields;

/// A time that the scheduler took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// When it began, on the monotonic clock.
    pub at: Instant,
    /// How long it was, in ns.
    pub span: Nanos,
    /// For what.
    pub kind: Span,
    /// The CPU where it ended.
    pub cpu: u16,
    /// Of kicks: the CPU that kicked. Of holds: the number of what it is a part of ([`Interval::whole`]), which began at `at`.
    pub from: u16,
}

/// What the scheduler did meanwhile: `enum laxity_span`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// The handler of the timer that releases jobs, if it released one. It sets the timer again, too.
    Release,
    /// From when Linux asks which thread a CPU has next until that is decided, without [`Span::Rearming`]; where a task had the
    /// CPU or gets it.
    Scheduling,
    /// From then until the thread of a task has the CPU, as far as sched_ext is told: Linux has chosen it and will switch.
    Switch,
    /// From when another CPU is kicked until Linux asks there.
    Kick,
    /// The same, of a CPU that kicks itself.
    KickHere,
    /// The handler of the timer of a quantum, with releases that are due.
    Tick,
    /// The timer of releases is set after a completion. In fact it is a part of the decision, which is shorter by that and comes
    /// before.
    Rearming,
    /// From when the timer of releases or of a quantum was due until its handler begins.
    Lateness,
    /// From when the lock of the links is asked for until it is given back.
    Links,
    /// The same, of the lock of the tasks that wait for a time.
    Times,
    /// A job that arrives is put into a queue of kind F or H, without a lock.
    Early,
}

impl Span {
    /// In the order of the numbers of the kernel's side.
    pub const ALL: [Span; 11] = [
        Span::Release,
        Span::Scheduling,
        Span::Switch,
        Span::Kick,
        Span::KickHere,
        Span::Tick,
        Span::Rearming,
        Span::Lateness,
        Span::Links,
        Span::Times,
        Span::Early,
    ];

    /// Whether it is a hold of a lock, or of none, as a part of something else.
    pub const fn is_hold(self) -> bool {
        matches!(self, Span::Links | Span::Times | Span::Early)
    }

    /// What a trace calls it; `None`: it has no such thing.
    fn overhead(self) -> Option<OverheadKind> {
        match self {
            Span::Release => Some(OverheadKind::Release),
            Span::Scheduling => Some(OverheadKind::Scheduling),
            Span::Switch => Some(OverheadKind::ContextSwitch),
            Span::Rearming => Some(OverheadKind::TimerRearming),
            Span::Tick => Some(OverheadKind::Tick),
            Span::Kick | Span::KickHere | Span::Lateness | Span::Links | Span::Times | Span::Early => None,
        }
    }
}

impl Interval {
    /// Bytes of the structure: fewer than a note has.
    pub const SIZE: usize = 24;

    /// As the kernel wrote it; `None` if that is none.
    pub fn read(bytes: &[u8]) -> Option<Interval> {
        let mut fields = Fields::of(bytes);
        let (at, span) = (Instant(fields.next_u64()?), Nanos(fields.next_u64()?));
        let (kind, cpu, from) = (fields.next_u16()?, fields.next_u16()?, fields.next_u16()?);
        let kind = Span::ALL.get(usize::from(kind)).copied()?;
        Some(Interval { at, span, kind, cpu, from })
    }

    /// Of a hold: what it is a part of.
    pub fn whole(&self) -> Option<Span> {
        Span::ALL.get(usize::from(self.from)).copied().filter(|_| self.kind.is_hold())
    }
}

/// Adds `intervals` to the records of a trace that begins at `start` and knows so many CPUs.
///
/// A record of a tick has to stay just before the links that it decides: it gets the time that its handler takes from then
/// on, if it is of that CPU. With aligned quanta the handler may be on another one, and then its time is not in the trace. If
/// something was left out of the trace, so is what came after its last record.
pub fn add(records: &mut Vec<Record>, intervals: &[Interval], start: Instant, cpus: usize, is_whole: bool) {
    let last = records.last().map_or(Instant::ZERO, |record| record.at);
    let end = records.pop_if(|record| record.event == Event::End);
    let known = |interval: &&Interval| usize::from(interval.cpu) < cpus && usize::from(interval.from) < cpus;
    let since = |at: Instant| Instant(at.0.saturating_sub(start.0));
    let mut ticks = Vec::new();
    for interval in intervals.iter().filter(known) {
        let (at, cpu, duration) = (since(interval.at), CpuId(interval.cpu), interval.span);
        if !is_whole && at > last {
            continue;
        }
        let event = match interval.kind {
            Span::Tick => {
                ticks.push((at, at.saturating_add(duration), cpu));
                continue;
            }
            Span::Kick => Event::Ipi { from: CpuId(interval.from), to: cpu, latency: duration },
            kind => match kind.overhead() {
                Some(kind) => Event::Overhead { cpu, kind, duration },
                None => continue,
            },
        };
        records.push(Record { at, event });
    }
    ticks.sort_unstable_by_key(|&(from, ..)| from);
    let mut handlers = ticks.into_iter().peekable();
    for record in records.iter_mut() {
        let Event::Overhead { cpu, kind: OverheadKind::Tick, duration } = &mut record.event else { continue };
        while handlers.next_if(|&(_, until, _)| until < record.at).is_some() {}
        if let Some((_, until, _)) = handlers.next_if(|&(from, _, of)| from <= record.at && of == *cpu) {
            *duration = until - record.at;
        }
    }
    // What was there keeps its order: it comes first of what happens at one time.
    records.sort_by_key(|record| record.at);
    if let Some(end) = end {
        let at = records.last().map_or(end.at, |record| record.at.max(end.at));
        records.push(Record { at, ..end });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(at: u64, span: u64, kind: Span, cpu: u16) -> Interval {
        Interval { at: Instant(1_000 + at), span: Nanos(span), kind, cpu, from: 0 }
    }

    #[test]
    fn an_interval_is_read_as_the_kernel_writes_it() {
        let mut bytes: Vec<u8> = [5_000_u64, 70].iter().flat_map(|number| number.to_ne_bytes()).collect();
        bytes.extend([3_u16, 1, 2, 0].iter().flat_map(|number| number.to_ne_bytes()));
        assert_eq!(bytes.len(), Interval::SIZE);
        let read = Interval { at: Instant(5_000), span: Nanos(70), kind: Span::Kick, cpu: 1, from: 2 };
        assert_eq!(Interval::read(&bytes), Some(read));
        bytes[16] = 8;
        let hold = Interval::read(&bytes).expect("of the lock of the links");
        assert_eq!((hold.kind, hold.whole()), (Span::Links, Some(Span::Switch)));
        bytes[16] = 11;
        assert_eq!(Interval::read(&bytes), None, "no such kind");
        assert_eq!(Interval::read(&bytes[..20]), None);
    }

    #[test]
    fn intervals_come_after_what_happened_at_their_time_and_give_ticks_their_length() {
        let tick = |duration| Event::Overhead { cpu: CpuId(0), kind: OverheadKind::Tick, duration };
        let link = Event::Link { cpu: CpuId(0), job: None };
        let at = |at, event| Record { at: Instant(at), event };
        let mut records =
            vec![at(100, tick(Nanos::ZERO)), at(100, link), at(300, tick(Nanos::ZERO)), at(300, Event::End)];
        let intervals = [
            interval(250, 90, Span::Tick, 1),
            interval(95, 30, Span::Tick, 0),
            interval(100, 20, Span::Kick, 1),
            interval(400, 7, Span::Scheduling, 0),
            interval(90, 5, Span::Lateness, 0),
            interval(90, 5, Span::Release, 2),
        ];
        add(&mut records, &intervals, Instant(1_000), 2, true);
        let kick = Event::Ipi { from: CpuId(0), to: CpuId(1), latency: Nanos(20) };
        let decision = Event::Overhead { cpu: CpuId(0), kind: OverheadKind::Scheduling, duration: Nanos(7) };
        let expected = [
            at(100, tick(Nanos(25))),
            at(100, link),
            at(100, kick),
            at(300, tick(Nanos::ZERO)),
            at(400, decision),
            at(400, Event::End),
        ];
        assert_eq!(records, expected);
    }

    #[test]
    fn what_comes_after_a_loss_is_left_out() {
        let event = Event::Link { cpu: CpuId(0), job: None };
        let mut records = vec![Record { at: Instant(100), event }];
        let intervals = [interval(50, 1, Span::Release, 0), interval(101, 1, Span::Release, 0)];
        add(&mut records, &intervals, Instant(1_000), 1, false);
        assert_eq!(records.iter().map(|record| record.at.0).collect::<Vec<_>>(), [50, 100]);
    }
}
