//! One realization: the scheduler is loaded, has more and more tasks, and is ended.

use std::path::Path;

use laxity_measure::kernel::{ByTasks, Hold, Part, Waiting};
use laxity_model::{CpuId, Instant, Nanos};
use laxity_scx::Settings;
use laxity_scx::intervals::{Interval, Span};
use laxity_sys::clock::{now, sleep_until};

use super::drawn::{DrawnTask, draw};
use super::live;
use super::programs::{Loader, Worker};
use super::worker::{Plan, Seen};
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// What is measured of a realization, and how.
pub struct Session<'a> {
    /// The scheduler.
    pub settings: Settings,
    /// The program that loads it.
    pub loader: &'a Path,
    /// CPUs that have jobs.
    pub jobs_on: usize,
    /// Numbers of tasks, ascending.
    pub counts: &'a [u32],
    /// For each of them.
    pub duration: Nanos,
    /// Of each CPU with the most tasks, in percent.
    pub load: u32,
    /// Of the tasks.
    pub seed: u64,
    /// Whether nothing is shown.
    pub is_quiet: bool,
}

/// Tasks of a process, as its page has room for.
const TASKS_OF_PROCESS: usize = 31;
/// For so long one task looks for interruptions: a hundred ticks of Linux at least.
const ALONE: Nanos = Nanos::from_millis(1_000);
/// Tasks that just began are not measured for so long.
const SETTLES: Nanos = Nanos::from_millis(300);
/// How often a request to end is looked for.
const LOOK: Nanos = Nanos::from_millis(100);

/// Times, and the number of tasks then.
struct Window {
    tasks: u32,
    from: Instant,
    until: Instant,
}

impl Session<'_> {
    /// Measures.
    ///
    /// # Errors
    /// The reason of a program that ended early; [`CliError::Interrupted`]. The scheduler has ended, and so have all tasks.
    pub fn measure(&self, interrupt: &Interrupt) -> Result<(ByTasks, Waiting), CliError> {
        let name = &self.settings.policy;
        let progress = Progress::new(format!("{name} "), self.whole(), self.is_quiet);
        progress.doing(Instant::ZERO, "the kernel verifies the scheduler");
        // A request to end reaches the programs, too: by the terminal, and they then end early.
        let stopped = |reason: String| match interrupt.is_requested() {
            true => CliError::Interrupted { reached: format!("{name} was being measured; nothing was written of it") },
            false => live(reason),
        };
        // Declared first, dropped last: tasks end before their scheduler.
        let loader = Loader::start(self.loader, &self.settings).map_err(stopped)?;
        let alone = Worker::start(&Plan::Interruptions(ALONE)).and_then(Worker::finish).map_err(stopped)?;
        let most = self.counts.last().copied().unwrap_or_default();
        let tasks = draw(most, self.jobs_on, self.load, self.seed);
        let (mut workers, mut windows) = (Vec::new(), Vec::new());
        let (mut begun, mut measured) = (0, Nanos::ZERO);
        for &count in self.counts {
            let new: &[DrawnTask] = &tasks[begun as usize..count as usize];
            for chunk in new.chunks(TASKS_OF_PROCESS) {
                workers.push(Worker::start(&Plan::Tasks(chunk.to_vec())).map_err(stopped)?);
            }
            begun = count;
            sleep_until(now().saturating_add(SETTLES));
            let from = now();
            let until = from.saturating_add(self.duration);
            while now() < until {
                if interrupt.is_requested() {
                    return Err(stopped(String::new()));
                }
                progress.doing(Instant(measured.0 + now().saturating_since(from).0), format_args!("{count} tasks"));
                sleep_until(now().saturating_add(LOOK).min(until));
            }
            measured = Nanos(measured.0 + self.duration.0);
            windows.push(Window { tasks: count, from, until: now() });
        }
        let seen: Vec<Seen> = workers.into_iter().map(Worker::finish).collect::<Result<_, _>>().map_err(stopped)?;
        let intervals = loader.finish().map_err(stopped)?;
        progress.finish();
        if interrupt.is_requested() {
            return Err(stopped(String::new()));
        }
        if seen.iter().chain([&alone]).any(|seen| seen.by_linux > 0) {
            return Err(live(format!("{name}: the scheduler ended before its tasks; nothing can be said of it")));
        }
        Ok(sorted(&windows, &intervals, &seen, &alone))
    }

    fn whole(&self) -> Nanos {
        Nanos(self.duration.0.saturating_mul(self.counts.len() as u64))
    }
}

/// All samples by the number of tasks at their time, and how often locks are taken.
fn sorted(windows: &[Window], intervals: &[Interval], seen: &[Seen], alone: &Seen) -> (ByTasks, Waiting) {
    let (mut measured, mut waiting) = (ByTasks::default(), Waiting::default());
    measured.extend(0, Part::Interruption, alone.interruptions.iter().map(|(_, span)| span.0));
    let tasks_at = |at: Instant| windows.iter().find(|it| it.from <= at && at < it.until).map(|it| it.tasks);
    for interval in intervals {
        if let Some(tasks) = tasks_at(interval.at) {
            measured.extend(tasks, part(interval.kind), [interval.span.0]);
            if let Some(whole) = interval.whole() {
                let &Interval { at: began, span, kind, cpu, .. } = interval;
                waiting.add(tasks, Hold { lock: part(kind), whole: part(whole), cpu: CpuId(cpu), began, span });
            }
        }
    }
    for &(at, span) in seen.iter().flat_map(|seen| &seen.first_instructions) {
        if let Some(tasks) = tasks_at(at) {
            measured.extend(tasks, Part::FirstInstruction, [span.0]);
        }
    }
    (measured, waiting)
}

fn part(span: Span) -> Part {
    match span {
        Span::Release => Part::Release,
        Span::Scheduling => Part::Scheduling,
        Span::Switch => Part::Switch,
        Span::Kick => Part::Kick,
        Span::KickHere => Part::KickHere,
        Span::Tick => Part::Tick,
        Span::Rearming => Part::Rearming,
        Span::Lateness => Part::Lateness,
        Span::Links => Part::Links,
        Span::Times => Part::Times,
        Span::Early => Part::Early,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_belong_to_the_tasks_that_there_were_and_those_between_to_none() {
        let window = |tasks, from, until| Window { tasks, from: Instant(from), until: Instant(until) };
        let windows = [window(5, 100, 200), window(10, 300, 400)];
        let interval = |at, span| Interval { at: Instant(at), span: Nanos(span), kind: Span::Release, cpu: 0, from: 0 };
        let intervals = [interval(100, 1), interval(199, 2), interval(200, 3), interval(399, 4)];
        let seen =
            Seen { first_instructions: vec![(Instant(350), Nanos(7)), (Instant(250), Nanos(8))], ..Seen::default() };
        let alone = Seen { interruptions: vec![(Instant(1), Nanos(9))], ..Seen::default() };
        let (found, _) = sorted(&windows, &intervals, &[seen], &alone);
        let mut expected = ByTasks::default();
        expected.extend(0, Part::Interruption, [9]);
        expected.extend(5, Part::Release, [1, 2]);
        expected.extend(10, Part::Release, [4]);
        expected.extend(10, Part::FirstInstruction, [7]);
        assert_eq!(found, expected);
    }
}
