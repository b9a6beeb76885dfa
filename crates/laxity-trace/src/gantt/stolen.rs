//! Time that a CPU did not give to any thread, taken out of what threads were said to do there.

use laxity_model::{CpuId, Instant};

use crate::intervals::{Activity, Begin, Interval, Stop, Timeline};

/// Of each CPU the spans in which it was stolen, in order and apart.
#[derive(Clone, Debug)]
pub(super) struct Stolen(Vec<Vec<(Instant, Instant)>>);

impl Stolen {
    pub fn of(timeline: &Timeline, cpus: usize) -> Stolen {
        let (mut spans, mut outside) = (vec![Vec::new(); cpus], vec![Vec::new(); cpus]);
        for interval in &timeline.intervals {
            match interval.activity {
                Activity::Stolen { cpu } => spans[cpu.index()].push((interval.from, interval.to)),
                Activity::Outside { cpu, .. } => outside[cpu.index()].push((interval.from, interval.to)),
                _ => {}
            }
        }
        // Of what has a name it is known what it was.
        Stolen(spans.iter().zip(&outside).map(|(spans, named)| without(spans, named)).collect())
    }

    /// The interval without the time in which its CPU was stolen: the pieces of an execution are those of one dispatch. Of one
    /// that says that its CPU was stolen, what is left where something with a name had it.
    pub fn outside(&self, interval: &Interval) -> Vec<Interval> {
        if let Activity::Stolen { cpu } = interval.activity {
            let left = self.0[cpu.index()].iter().filter(|(from, to)| interval.from <= *from && *to <= interval.to);
            return left.map(|&(from, to)| Interval { from, to, ..*interval }).collect();
        }
        let mut pieces = Vec::new();
        let mut from = interval.from;
        for (stolen, until) in self.during(interval) {
            pieces.push((from, stolen));
            from = until;
        }
        pieces.push((from, interval.to));
        pieces.retain(|(from, to)| from < to);
        let last = pieces.len().saturating_sub(1);
        let piece = |(index, (from, to)): (usize, (Instant, Instant))| {
            let mut activity = interval.activity;
            if let Activity::Execution { begin, end, .. } = &mut activity {
                *begin = if index == 0 { *begin } else { Begin::AfterOverhead };
                *end = if index == last { *end } else { Stop::Overhead };
            }
            Interval { from, to, activity }
        };
        pieces.into_iter().enumerate().map(piece).collect()
    }

    /// When the CPU of the interval was stolen during it.
    pub fn during(&self, interval: &Interval) -> impl Iterator<Item = (Instant, Instant)> {
        let cpu = if matches!(interval.activity, Activity::Stolen { .. }) { None } else { interval.activity.cpu() };
        let spans = cpu.map_or(&[][..], |cpu: CpuId| &self.0[cpu.index()]);
        let (from, to) = (interval.from, interval.to);
        let first = spans.partition_point(|&(_, until)| until <= from);
        let spans = spans[first..].iter().take_while(move |&&(stolen, _)| stolen < to);
        spans.map(move |&(stolen, until)| (stolen.max(from), until.min(to)))
    }
}

/// What is left of `spans` without `others`; both are in order and apart.
fn without(spans: &[(Instant, Instant)], others: &[(Instant, Instant)]) -> Vec<(Instant, Instant)> {
    let mut left = Vec::with_capacity(spans.len());
    for &(from, to) in spans {
        let mut from = from;
        let first = others.partition_point(|&(_, until)| until <= from);
        for &(begin, end) in others[first..].iter().take_while(|&&(begin, _)| begin < to) {
            left.push((from, begin.max(from)));
            from = end;
        }
        left.push((from, to));
    }
    left.retain(|(from, to)| from < to);
    left
}
