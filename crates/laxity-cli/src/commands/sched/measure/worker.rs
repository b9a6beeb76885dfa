//! A process whose threads are tasks that are measured. It ends with its standard input, however the measuring program ends.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use laxity_model::{Instant, Nanos};
use laxity_scx::{Membership, Task, TaskRequest};
use laxity_sys::clock::{now, thread_cpu_time};
use serde::{Deserialize, Serialize};

use super::drawn::DrawnTask;

/// What the process does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// These tasks, of which a process has 31 at most, until it is to end.
    Tasks(Vec<DrawnTask>),
    /// One task, whose one job looks for interruptions for so long.
    Interruptions(Nanos),
}

/// It says this in a line once all its threads are tasks.
pub const READY: &str = "ready";

/// What it saw: samples, each with its time on the monotonic clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// From when the scheduler says that a thread has the CPU until the thread reads its clock, at the begin of a job.
    pub first_instructions: Vec<(Instant, Nanos)>,
    /// Gaps in the time of the job that looked for them.
    pub interruptions: Vec<(Instant, Nanos)>,
    /// Jobs that Linux scheduled, as the scheduler had ended.
    pub by_linux: u32,
}

/// Does what `plan` says, as JSON; says that it is ready, and at the end, in the last line, what it saw.
pub fn run(plan: &str) -> Result<(), String> {
    let plan: Plan = serde_json::from_str(plan).map_err(|error| format!("no plan of this version: {error}"))?;
    let membership = Arc::new(Membership::join().map_err(|error| error.to_string())?);
    let is_over = Arc::new(AtomicBool::new(false));
    let (ready, begun) = mpsc::channel();
    let start = now().saturating_add(Nanos::from_millis(20));
    let requests = match &plan {
        Plan::Tasks(tasks) => tasks.iter().map(|task| request(task, start)).collect(),
        &Plan::Interruptions(length) => vec![alone(length, start)],
    };
    let threads: Vec<_> = requests
        .into_iter()
        .map(|request: TaskRequest| {
            let (membership, is_over, ready) = (Arc::clone(&membership), Arc::clone(&is_over), ready.clone());
            let looks_for = match plan {
                Plan::Tasks(_) => None,
                Plan::Interruptions(length) => Some(length),
            };
            thread::spawn(move || {
                // The measuring program may be gone.
                let said = || {
                    let _ = ready.send(());
                };
                let task = membership.begin_then(&request, said).map_err(|error| error.to_string())?;
                Ok::<_, String>(match looks_for {
                    None => execute_jobs(task, &request, &is_over),
                    Some(length) => look_for_interruptions(task, length),
                })
            })
        })
        .collect();
    drop(ready);
    if begun.iter().take(threads.len()).count() == threads.len() {
        say(READY)?;
        if matches!(plan, Plan::Tasks(_)) {
            // An error is an end, too.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        }
    }
    is_over.store(true, Ordering::Relaxed);
    let mut all = Seen::default();
    for thread in threads {
        let seen = thread.join().map_err(|_| "a thread panicked".to_owned())??;
        all.first_instructions.extend(seen.first_instructions);
        all.interruptions.extend(seen.interruptions);
        all.by_linux += seen.by_linux;
    }
    say(&serde_json::to_string(&all).expect("it is plain"))
}

fn say(line: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

fn request(task: &DrawnTask, start: Instant) -> TaskRequest {
    let release = Some(start.saturating_add(task.phase));
    TaskRequest { release, ..TaskRequest::periodic(&task.name, task.period, task.cost) }
}

fn alone(length: Nanos, start: Instant) -> TaskRequest {
    TaskRequest { release: Some(start), ..TaskRequest::periodic("alone", Nanos(length.0.saturating_mul(100)), length) }
}

/// Jobs until the end is said. Between them the scheduler keeps the thread: none sleeps, however long its period is, so that each
/// job takes the same way.
fn execute_jobs(mut task: Task, request: &TaskRequest, is_over: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    while !is_over.load(Ordering::Relaxed) {
        let before = task.runs_since();
        let Some(job) = task.next_job_by(|_| true) else { break };
        if !job.is_scheduled {
            seen.by_linux += 1;
            break;
        }
        // Read again: it may have lost the CPU in between.
        let (since, at, still) = (task.runs_since(), now(), task.runs_since());
        // A job that follows one that was late goes on with the CPU.
        if let Some(since) = since.filter(|_| since != before && since == still) {
            seen.first_instructions.push((at, at.saturating_since(since)));
        }
        let begin = thread_cpu_time();
        while thread_cpu_time().0 - begin.0 < request.wcet.0 {}
    }
    seen
}

/// A gap is what is longer than this: entering and leaving Linux takes more.
const GAP: Nanos = Nanos(500);
/// Or longer than so many times what lies between two looks at the clock as a rule.
const FACTOR: u64 = 5;
/// From so many looks it is known what the rule is.
const LOOKS: usize = 1_000;

fn look_for_interruptions(mut task: Task, length: Nanos) -> Seen {
    let mut seen = Seen::default();
    let job = task.next_job();
    if !job.is_scheduled {
        seen.by_linux += 1;
        return seen;
    }
    let mut steps: Vec<u64> = (0..LOOKS)
        .map(|_| {
            let begin = now();
            (now() - begin).0
        })
        .collect();
    steps.sort_unstable();
    let gap = Nanos(steps[LOOKS / 2].saturating_mul(FACTOR)).max(GAP);
    let (end, mut last) = (now().saturating_add(length), now());
    while last < end {
        let next = now();
        if next - last > gap {
            seen.interruptions.push((last, next - last));
            // What noting it took is no gap.
            last = now();
        } else {
            last = next;
        }
    }
    seen
}
