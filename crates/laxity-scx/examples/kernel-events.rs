//! Tasks of the scheduler in the kernel whose jobs are not released once a period: at events, and at times that the threads say.
//!
//! ```text
//! kernel-events [jobs=20]
//! ```
//!
//! A source, once in 40 ms, sends four messages one after another, which release jobs of a consumer; a radio has jobs at random
//! times, with jitter. A least urgent task computes all the time. Prints a line for each task, times in us: how late jobs of
//! the consumer were released after their messages, how many of its deadlines are closer than its period, and how far
//! releases and deadlines of the radio are from those that it said. Ends with 0 if each job was there.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use laxity_model::{Instant, Nanos};
use laxity_scx::{Membership, Releases, Task, TaskRequest};
use laxity_sys::clock::{now, sleep_until, thread_cpu_time};
use laxity_testing::Random;

/// Messages of one job of the source.
const BURST: usize = 4;
const SOURCE: Nanos = Nanos::from_millis(40);
/// Of the consumer, whose messages come faster.
const PERIOD: Nanos = Nanos::from_millis(10);
const RADIO: Nanos = Nanos::from_millis(15);

fn execute(cost: Nanos) {
    let begin = thread_cpu_time();
    while thread_cpu_time().0 - begin.0 < cost.0 {}
}

/// Of times in ns, the largest in us.
fn most(times: &[u64]) -> u64 {
    times.iter().max().copied().unwrap_or(0) / 1_000
}

type Outcome = Result<String, String>;

/// A thread that is a task as `request` says, and does `work`.
fn task(
    membership: &Arc<Membership>,
    request: TaskRequest,
    work: impl FnOnce(Task) -> Outcome + Send + 'static,
) -> JoinHandle<Outcome> {
    let membership = Arc::clone(membership);
    thread::spawn(move || work(membership.begin(&request).map_err(|error| error.to_string())?))
}

fn send(mut task: Task, jobs: usize, messages: &Sender<Instant>) -> Outcome {
    for _ in 0..jobs {
        task.next_job();
        for _ in 0..BURST {
            execute(Nanos::from_micros(300));
            messages.send(now()).map_err(|error| error.to_string())?;
        }
    }
    Ok(format!("source jobs={jobs}"))
}

fn consume(mut task: Task, messages: &Receiver<Instant>) -> Outcome {
    let (mut late, mut jobs, mut close) = (Vec::new(), 0, 0);
    let (mut last, mut done) = (Instant::ZERO, Instant::ZERO);
    loop {
        let mut received = None;
        let job = task.next_event(|| received = messages.recv().ok());
        // The source has ended.
        let Some(sent) = received else { break };
        jobs += 1;
        // Else it did not sleep.
        if done < sent {
            late.push(job.release.saturating_since(sent).0);
        }
        close += u32::from(job.number > 2 && job.deadline < last.saturating_add(PERIOD));
        last = job.deadline;
        execute(Nanos::from_micros(500));
        done = now();
    }
    Ok(format!("consumer jobs={jobs} late_us={} close={close}", most(&late)))
}

fn receive(mut task: Task, jobs: usize, start: Instant) -> Outcome {
    let mut random = Random::of(1);
    let (mut releases, mut deadlines, mut expected) = (Vec::new(), Vec::new(), (start, start.saturating_add(RADIO)));
    let sleep = |until| {
        sleep_until(until);
        true
    };
    for _ in 0..jobs {
        let job = task.next_job_at(expected.0, expected.1, sleep).ok_or("it never stops")?;
        releases.push(job.release.0.abs_diff(expected.0.0));
        deadlines.push(job.deadline.0.abs_diff(expected.1.0));
        execute(Nanos::from_millis(1));
        let due = expected.1.saturating_add(Nanos(RADIO.0 + random.below(RADIO.0)));
        // It arrives a period before it is due, and is released later.
        let arrival = Instant(due.0 - RADIO.0);
        expected = (arrival.saturating_add(Nanos(random.below(RADIO.0 / 4))), due);
    }
    Ok(format!("radio jobs={jobs} release_off_us={} deadline_off_us={}", most(&releases), most(&deadlines)))
}

fn run(jobs: usize) -> Result<(), String> {
    let membership = Arc::new(Membership::join().map_err(|error| error.to_string())?);
    // All threads are tasks by then: a new control page takes Linux a grace period of RCU.
    let start = now().saturating_add(Nanos::from_millis(1_000));
    let end = start.saturating_add(Nanos(SOURCE.0 * jobs as u64));
    let request = |name: &str, period, wcet, priority| TaskRequest {
        priority,
        release: Some(start),
        ..TaskRequest::periodic(name, period, wcet)
    };
    let told = Releases::Told { due: Some(start.saturating_add(RADIO)) };
    let (sender, receiver) = channel();
    let source = request("source", SOURCE, Nanos::from_millis(2), 2);
    let consumer = TaskRequest { releases: Releases::Events, ..request("consumer", PERIOD, Nanos::from_millis(1), 1) };
    let radio = TaskRequest { releases: told, ..request("radio", RADIO, Nanos::from_millis(2), 3) };
    let other = request("other", Nanos::from_millis(400), Nanos::from_millis(100), 4);
    let threads = [
        task(&membership, consumer, move |task| consume(task, &receiver)),
        task(&membership, source, move |task| send(task, jobs, &sender)),
        task(&membership, radio, move |task| receive(task, jobs, start)),
        task(&membership, other, move |mut task| {
            while task.next_job().release < end {
                execute(Nanos::from_millis(100));
            }
            Ok("other".to_owned())
        }),
    ];
    for thread in threads {
        println!("{}", thread.join().map_err(|_| "a thread panicked".to_owned())??);
    }
    Ok(())
}

fn main() -> ExitCode {
    let jobs = match std::env::args().nth(1) {
        None => Ok(20),
        Some(text) => text.strip_prefix("jobs=").and_then(|jobs| jobs.parse().ok()).ok_or(text),
    };
    let outcome = jobs.map_err(|text| format!("{text}: jobs=N is known")).and_then(run);
    if let Err(message) = &outcome {
        eprintln!("error: {message}");
    }
    ExitCode::from(u8::from(outcome.is_err()))
}
