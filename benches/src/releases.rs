//! How soon a released job begins.

use std::error::Error;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use laxity_model::Nanos;
use laxity_sys::clock::now;

use crate::periodic::{Class, Periodic, Stage, Timing, execute};

/// The most urgent task, which is measured.
const PERIOD: Nanos = Nanos::from_millis(1);
const BUDGET: Nanos = Nanos::from_micros(200);
/// What the jobs of the others execute.
const OTHERS: Nanos = Nanos::from_micros(100);
/// Jobs before those that are measured, in which memory is touched.
const WARM: usize = 20;

/// From the releases of the most urgent of so many tasks to its jobs' first instructions, in microseconds. The other tasks
/// execute for a tenth of the time.
///
/// # Errors
/// If Linux refuses the class.
pub fn releases(class: Class, tasks: usize, jobs: usize) -> Result<Vec<f64>, Box<dyn Error>> {
    let stage = Stage::new(class)?;
    let (all, is_over) = (Barrier::new(tasks), AtomicBool::new(false));
    let start = now() + Nanos::from_millis(20 + tasks as u64);
    // Four of 100 us in about 4 ms, or 99 of them in about 99 ms.
    let period = |number: usize| Nanos::from_micros(1000 * tasks as u64 + 10 * number as u64);
    Ok(thread::scope(|scope| {
        for number in 1..tasks {
            let (stage, all, is_over) = (&stage, &all, &is_over);
            scope.spawn(move || {
                let rank = (number as u8).min(9);
                let timing = Timing { rank, period: period(number), budget: Nanos(4 * OTHERS.0), start };
                let entered = stage.enter(timing);
                all.wait();
                let Ok(mut periodic) = entered else { return };
                while !is_over.load(Ordering::Relaxed) {
                    periodic.wait();
                    execute(OTHERS, std::hint::spin_loop);
                }
            });
        }
        let measured = scope.spawn(|| {
            let entered = stage.enter(Timing { rank: 0, period: PERIOD, budget: BUDGET, start });
            all.wait();
            let latencies = entered.map(|mut periodic| measure(&mut periodic, jobs));
            is_over.store(true, Ordering::Relaxed);
            latencies
        });
        measured.join().expect("no panic")
    })?)
}

fn measure(periodic: &mut Periodic, jobs: usize) -> Vec<f64> {
    let latency = |_| {
        let release = periodic.wait();
        now().saturating_since(release).0 as f64 / 1000.0
    };
    (0..WARM + jobs).map(latency).skip(WARM).collect()
}

/// From the last instruction of a preempted job to the first one of the job that preempts it, in microseconds.
///
/// # Errors
/// If Linux refuses the class.
pub fn preemptions(class: Class, jobs: usize) -> Result<Vec<f64>, Box<dyn Error>> {
    let stage = Stage::new(class)?;
    let (all, is_over, last) = (Barrier::new(2), AtomicBool::new(false), AtomicU64::new(0));
    let start = now() + Nanos::from_millis(20);
    Ok(thread::scope(|scope| {
        scope.spawn(|| {
            let timing = Timing { rank: 1, period: Nanos::from_millis(10), budget: Nanos::from_millis(7), start };
            let entered = stage.enter(timing);
            all.wait();
            let Ok(mut periodic) = entered else { return };
            while !is_over.load(Ordering::Relaxed) {
                periodic.wait();
                execute(Nanos::from_millis(5), || last.store(now().0, Ordering::Relaxed));
                last.store(0, Ordering::Relaxed);
            }
        });
        let measured = scope.spawn(|| {
            let entered = stage.enter(Timing { rank: 0, period: PERIOD, budget: BUDGET, start });
            all.wait();
            let costs = entered.map(|mut periodic| {
                let cost = || {
                    periodic.wait();
                    let first = now().0;
                    // 0: the other has no job, or is between its last instruction and the end.
                    Some(last.load(Ordering::Relaxed))
                        .filter(|&last| last > 0)
                        .map(|last| (first - last) as f64 / 1000.0)
                };
                let costs = std::iter::repeat_with(cost).flatten();
                costs.skip(WARM).take(jobs / 2).collect::<Vec<f64>>()
            });
            is_over.store(true, Ordering::Relaxed);
            costs
        });
        measured.join().expect("no panic")
    })?)
}
