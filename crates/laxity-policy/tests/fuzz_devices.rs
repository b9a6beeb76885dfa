//! Random event sequences into GPU engines and into the queues of bottom halves: nothing is lost, made or done out of
//! order.

use std::collections::{BTreeMap, VecDeque};

use laxity_model::{Engine, Nanos};
use laxity_policy::gpu::{Action, Engines, Operation};
use laxity_policy::interrupt::{ProcessAware, Tasklets, Threads};
use proptest::prelude::*;

const ENGINES: [Engine; 3] = Engine::ALL;

/// An operation is issued to a stream and an engine, or the operation on an engine is complete.
#[derive(Clone, Copy, Debug)]
enum Gpu {
    Issue { stream: u32, engine: usize },
    Complete { engine: usize },
}

/// What is known of operations, by their number in the order of issue.
#[derive(Default)]
struct Issued {
    streams: BTreeMap<usize, u32>,
    engines: BTreeMap<usize, usize>,
    running: BTreeMap<usize, usize>,
    /// Eligible and not begun, of each engine, in the order in which they became eligible.
    eligible: [VecDeque<usize>; ENGINES.len()],
}

impl Issued {
    /// Whether no operation before `it` in its stream is unfinished.
    fn is_first(&self, it: usize) -> bool {
        self.streams.range(..it).all(|(_, stream)| *stream != self.streams[&it])
    }

    fn begin(&mut self, actions: Vec<Action<usize>>) {
        for Action::Begin { engine, what, duration } in actions {
            assert_eq!(duration, Nanos(what as u64), "an operation takes as long as it was said to");
            let slot = ENGINES.iter().position(|&known| known == engine).expect("one of them");
            assert_eq!(self.engines[&what], slot, "an operation runs on its engine");
            assert_eq!(self.running.insert(slot, what), None, "an engine runs one operation at a time");
            assert_eq!(self.eligible[slot].pop_front(), Some(what), "first come, first served");
        }
    }

    fn check(&self) {
        for (slot, eligible) in self.eligible.iter().enumerate() {
            assert!(eligible.is_empty() || self.running.contains_key(&slot), "an engine idles though it has work");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn engines_are_first_come_first_served_streams_in_order_and_nothing_idles(
        steps in prop::collection::vec(
            prop_oneof![
                3 => (0..5u32, 0..3usize).prop_map(|(stream, engine)| Gpu::Issue { stream, engine }),
                2 => (0..3usize).prop_map(|engine| Gpu::Complete { engine }),
            ],
            0..200,
        ),
    ) {
        let (mut gpu, mut issued) = (Engines::new(2), Issued::default());
        for (what, step) in steps.into_iter().enumerate() {
            let mut actions = Vec::new();
            match step {
                Gpu::Issue { stream, engine } => {
                    issued.streams.insert(what, stream);
                    issued.engines.insert(what, engine);
                    if issued.is_first(what) {
                        issued.eligible[engine].push_back(what);
                    }
                    let duration = Nanos(what as u64);
                    gpu.issue(Operation { stream, engine: ENGINES[engine], duration, what }, &mut actions);
                }
                Gpu::Complete { engine } => {
                    let Some(done) = issued.running.remove(&engine) else { continue };
                    prop_assert_eq!(gpu.complete(ENGINES[engine], &mut actions), done);
                    let stream = issued.streams.remove(&done);
                    let next = issued.streams.iter().find(|(_, other)| Some(**other) == stream).map(|(&next, _)| next);
                    if let Some(next) = next {
                        issued.eligible[issued.engines[&next]].push_back(next);
                    }
                }
            }
            issued.begin(actions);
            issued.check();
            for (slot, engine) in ENGINES.into_iter().enumerate() {
                prop_assert_eq!(gpu.busy(engine), issued.running.get(&slot));
            }
        }
    }

    /// `Some(true)`: an interrupt; `Some(false)`: the daemon runs one; `None`: the CPU is about to go on.
    #[test]
    fn tasklets_run_in_order_and_at_most_ten_after_an_interrupt(
        steps in prop::collection::vec(prop::option::of(any::<bool>()), 0..200),
    ) {
        let (mut tasklets, mut raised, mut done, mut allowed) = (Tasklets::new(), 0, 0, 0);
        for step in steps {
            let ran = match step {
                Some(true) => {
                    tasklets.raise(raised);
                    (raised, allowed) = (raised + 1, 10);
                    None
                }
                Some(false) => {
                    let ran = tasklets.next_for_daemon();
                    prop_assert_eq!(ran.is_some(), done < raised);
                    ran
                }
                None => {
                    let ran = tasklets.next_on_stack();
                    prop_assert_eq!(ran.is_some(), allowed > 0 && done < raised);
                    allowed = if ran.is_some() { allowed - 1 } else { 0 };
                    ran
                }
            };
            prop_assert!(ran.is_none_or(|ran| ran == done), "in the order of the interrupts");
            done += usize::from(ran.is_some());
            prop_assert_eq!(tasklets.len(), raised - done);
        }
    }

    /// Bottom halves with a level, which a CPU with a job of some level, or none, looks at.
    #[test]
    fn a_process_aware_bottom_half_runs_before_less_urgent_jobs_only(
        steps in prop::collection::vec((any::<bool>(), prop::option::of(0..6u64)), 0..150),
    ) {
        let (mut queue, mut waiting) = (ProcessAware::new(), Vec::new());
        for (number, (arrives, level)) in steps.into_iter().enumerate() {
            if arrives {
                queue.enqueue((level, number));
                waiting.push((level.unwrap_or(u64::MAX), number));
                continue;
            }
            // Of equals the first, and none that comes after the job.
            let first = waiting.iter().copied().min().filter(|&(of, _)| level.is_none_or(|level| of <= level));
            let taken = queue.take_before(level.map(|level| (level, 0)), |half| half.0.map(|level| (level, 0)));
            prop_assert_eq!(taken.map(|(_, number)| number), first.map(|(_, number)| number));
            waiting.retain(|&(_, number)| first.is_none_or(|(_, taken)| number != taken));
            prop_assert_eq!(queue.len(), waiting.len());
        }
    }

    /// `(device, false)`: an interrupt of the device; `(device, true)`: its thread finishes. Number 5 is no device, but
    /// a thread that serves none.
    #[test]
    fn a_thread_is_woken_when_idle_and_serves_its_devices_in_order(
        threads in 1..4usize,
        steps in prop::collection::vec((0..6usize, any::<bool>()), 0..150),
    ) {
        let mut registry = Threads::new((0..5).map(|device| device % threads).collect(), 1);
        let mut queues = vec![VecDeque::new(); threads + 1];
        for (half, (device, finishes)) in steps.into_iter().enumerate() {
            let thread = if device == 5 { threads } else { device % threads };
            let queue = &mut queues[thread];
            if !finishes {
                let woken = queue.is_empty().then_some(thread);
                queue.push_back(half);
                let answer = match device {
                    5 => registry.submit_to(thread, half).then_some(thread),
                    _ => registry.submit(device, half),
                };
                prop_assert_eq!(answer, woken);
            } else if let Some(done) = queue.pop_front() {
                prop_assert_eq!(registry.finish(thread), done);
            }
            prop_assert_eq!(registry.serving(thread), queues[thread].front());
        }
    }
}
