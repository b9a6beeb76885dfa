//! Laxity's scheduler in user space against Linux's classes: how soon a released job begins, what a preemption costs, what
//! a decision costs, and how all of that grows with the tasks.
//!
//! All are measured in turn in every round, and ratios are taken within a round, so that a machine that is busy at times
//! slows them all. An ordinary thread keeps each CPU awake.

mod decisions;
mod periodic;
mod releases;
#[allow(dead_code, reason = "locks of GPUs use the rest")]
mod turns;

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clap::Parser;
use decisions::{Calls, Decisions};
use laxity_sched::Carry;
use laxity_sys::scheduling;
use periodic::Class;
use releases::{preemptions, releases};
use turns::median;

/// Measures Laxity's scheduler in user space against Linux's classes.
#[derive(Parser)]
struct Arguments {
    /// Rounds.
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// Measured jobs of each kind in a round.
    #[arg(long, default_value_t = 500)]
    jobs: usize,
}

/// What released jobs are measured under: the name, the class, and how many tasks there are.
const KINDS: [(&str, Class, usize); 5] = [
    ("SCHED_FIFO, 5 tasks", Class::Fifo, 5),
    ("SCHED_DEADLINE, 5 tasks", Class::Deadline, 5),
    ("Laxity, 5 tasks", LAXITY, 5),
    ("Laxity, 100 tasks", LAXITY, 100),
    ("Laxity by priority alone, 5", Class::Laxity(Carry::Priority), 5),
];
const FIFO: usize = 0;
const OURS: usize = 2;
const CROWD: usize = 3;
const LAXITY: Class = Class::Laxity(Carry::PriorityAndCpu);
/// What preemptions are measured under: the places in [`KINDS`].
const PREEMPTING: [usize; 3] = [FIFO, OURS, 4];

/// One round, in microseconds.
struct Round {
    /// For each of [`KINDS`]: median, 99th percentile, maximum; nothing where this user may not have the class.
    releases: Vec<Option<[f64; 3]>>,
    /// Medians, for each of [`PREEMPTING`].
    preemptions: Vec<f64>,
    decisions: Decisions,
    calls: Calls,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let cpus = scheduling::usable_cpus()?;
    let is_over = AtomicBool::new(false);
    let rounds: Vec<Round> = thread::scope(|scope| {
        for &cpu in &cpus {
            let is_over = &is_over;
            scope.spawn(move || {
                scheduling::pin(cpu).expect("it is usable");
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let rounds = (0..arguments.rounds).map(|_| round(&arguments)).collect::<Result<_, _>>();
        is_over.store(true, Ordering::Relaxed);
        rounds
    })?;
    report(&rounds);
    Ok(())
}

fn round(arguments: &Arguments) -> Result<Round, Box<dyn Error>> {
    let of_kind = |&(_, class, tasks): &(&str, Class, usize)| match releases(class, tasks, arguments.jobs) {
        Ok(latencies) => Ok(Some(summary(latencies))),
        // The kernel may have no bandwidth left for it.
        Err(error) if class == Class::Deadline => {
            eprintln!("SCHED_DEADLINE: {error}");
            Ok(None)
        }
        Err(error) => Err(error),
    };
    let preempting = |&kind: &usize| Ok::<_, Box<dyn Error>>(median(preemptions(KINDS[kind].1, arguments.jobs)?));
    Ok(Round {
        releases: KINDS.iter().map(of_kind).collect::<Result<_, _>>()?,
        preemptions: PREEMPTING.iter().map(preempting).collect::<Result<_, _>>()?,
        decisions: Decisions::measure()?,
        calls: Calls::measure()?,
    })
}

/// Median, 99th percentile, maximum.
fn summary(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len() - 1;
    [values[values.len() / 2], values[last * 99 / 100], values[last]]
}

fn report(rounds: &[Round]) {
    let of = |value: &dyn Fn(&Round) -> f64| median(rounds.iter().map(value).collect());
    println!("medians over {} rounds, in us", rounds.len());
    println!("from release to first instruction    median       p99   maximum");
    for (kind, (name, ..)) in KINDS.iter().enumerate() {
        let known: Vec<[f64; 3]> = rounds.iter().filter_map(|round| round.releases[kind]).collect();
        if known.is_empty() {
            println!("{name:<34} refused by Linux");
            continue;
        }
        let column = |index: usize| median(known.iter().map(|summary| summary[index]).collect());
        println!("{name:<34} {:>8.2} {:>9.2} {:>9.2}", column(0), column(1), column(2));
    }
    println!("from the preempted job's last instruction to the preempting one's first");
    for (at, &kind) in PREEMPTING.iter().enumerate() {
        println!("{:<34} {:>8.2}", KINDS[kind].0, of(&|round| round.preemptions[at]));
    }
    println!("a decision alone: release {:.2}, completion {:.2}", of(&|round| round.decisions.release), {
        of(&|round| round.decisions.completion)
    });
    println!(
        "system calls: priority of a thread {:.2}, its CPUs {:.2}, wake another by futex and switch to it {:.2}",
        of(&|round| round.calls.priority),
        of(&|round| round.calls.cpus),
        of(&|round| round.calls.futex),
    );
    let ratio = |kind: usize, to: usize, column: usize| {
        let of_round = |round: &Round| {
            let [kind, to] = [kind, to].map(|kind| round.releases[kind].expect("only SCHED_DEADLINE may be refused"));
            kind[column] / to[column]
        };
        of(&of_round)
    };
    println!(
        "sched release_ratio_fifo={:.2} release_p99_ratio_fifo={:.2} decision_us={:.2} preemption_us={:.2} \
         preemption_ratio_fifo={:.2} tasks100_ratio={:.2}",
        ratio(OURS, FIFO, 0),
        ratio(OURS, FIFO, 1),
        of(&|round| round.decisions.release),
        of(&|round| round.preemptions[1]),
        of(&|round| round.preemptions[1] / round.preemptions[0]),
        ratio(CROWD, OURS, 0),
    );
}
