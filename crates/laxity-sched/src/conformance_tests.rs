//! The state in shared memory, changed by two processes' views of it and by threads that are killed in between, is at every
//! step the state of a plain policy that got the same events.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use laxity_model::{CpuId, Instant, TaskId};
use laxity_policy::cpu::ready::BinomialHeap;
use laxity_policy::cpu::{Action, CpuPolicy, Event, EventDriven, Ranking, Standing};
use laxity_testing::{Random, TestRegistry};

use crate::config::{Carry, Config, Rule};
use crate::placement::{Class, Placement};
use crate::shared::Shared;
use crate::state_lock::ClusterGuard;
use crate::{Registry, System};

/// A plain policy whose links are carried out at once.
struct Plain {
    policy: EventDriven<BinomialHeap>,
    cpus: u16,
    sections: Vec<bool>,
}

impl Plain {
    fn handle(&mut self, now: Instant, events: &[Event]) {
        events.iter().for_each(|&event| self.policy.handle(now, event));
        let mut actions: Vec<Action> = Vec::new();
        self.policy.decide(now, &mut actions);
        let (mut out, mut to) = (Vec::new(), Vec::new());
        for cpu in (0..self.cpus).map(CpuId) {
            let on = self.policy.scheduled(cpu);
            let link = self.policy.linked(cpu).map(|job| job.task);
            let keeps = on.is_some_and(|task| self.sections[task.index()]);
            if on != link && !keeps {
                out.extend(on.map(|_| cpu));
                to.extend(link.map(|task| (cpu, task)));
            }
        }
        out.into_iter().for_each(|cpu| self.policy.handle(now, Event::Switched { cpu, task: None }));
        to.into_iter().for_each(|(cpu, task)| self.policy.handle(now, Event::Switched { cpu, task: Some(task) }));
    }

    fn saved(&self) -> Vec<u64> {
        let mut numbers = Vec::new();
        self.policy.save(&mut numbers);
        numbers
    }
}

/// When the thread that handles the events is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Death {
    /// Not at all.
    None,
    /// Before the state is published: nothing happened.
    Before,
    /// After that: all happened, and the next thread has to tell Linux.
    After,
}

struct Live {
    /// Two processes, as it were.
    views: [Arc<Shared>; 2],
    _systems: [System; 2],
}

impl Live {
    fn state(&self, view: usize) -> ClusterGuard<'_> {
        self.views[view].lock(0).expect("the memory is sound")
    }

    fn handle(&self, view: usize, events: &[(TaskId, Event)], level: Option<(TaskId, u64)>, death: Death) {
        let act = |state: &mut ClusterGuard<'_>| {
            level.into_iter().for_each(|(task, level)| state.cache.policy.set_level(task, level));
            events.iter().for_each(|&(task, event)| state.handle(task, event));
        };
        if death == Death::None {
            let mut state = self.state(view);
            act(&mut state);
            state.publish(None);
            return;
        }
        thread::scope(|scope| {
            let killed = scope.spawn(|| {
                let mut state = self.state(view);
                act(&mut state);
                if death == Death::After {
                    state.decide();
                    state.commit();
                }
                state.die();
            });
            killed.join().expect("no panic");
        });
    }

    fn saved(&self, view: usize) -> Vec<u64> {
        let mut numbers = Vec::new();
        self.state(view).cache.policy.save(&mut numbers);
        numbers
    }
}

fn agree(rule: Rule, cpus: u16, tasks: u16, seed: u64, events: u32) {
    let registry: TestRegistry<Registry> = TestRegistry::new(&format!("conformance-{seed}"));
    let name = "agree";
    let config = Config { tasks, carry: Carry::Nothing, ..Config::new(rule, vec![(0..cpus).collect()]) };
    let systems = [registry.create(name, &config).expect("created"), registry.attach(name).expect("attached")];
    let live = Live { views: [0, 1].map(|view: usize| systems[view].shared().clone()), _systems: systems };
    let ranking = Ranking::of_unknown(rule.model(), tasks.into());
    let policy = EventDriven::new(ranking, tasks.into(), cpus.into());
    let mut plain = Plain { policy, cpus, sections: vec![false; tasks.into()] };
    let mut random = Random::of(seed);
    let mut state = live.state(0);
    (0..u32::from(tasks)).for_each(|task| state.cache.set_member(TaskId(task), true));
    state.publish(None);
    let mut deaths = 0;
    for step in 0..events {
        let task = TaskId(random.below(tasks.into()) as u32);
        let cpu = CpuId(random.below(cpus.into()) as u16);
        let on = (0..cpus).map(CpuId).find(|&cpu| plain.policy.scheduled(cpu) == Some(task));
        let (mut level, in_section) = (None, plain.sections[task.index()]);
        let standing = plain.policy.standing(task).0;
        let at = match standing {
            Standing::Linked(cpu) => cpu,
            _ => on.unwrap_or(cpu),
        };
        let event = match (standing, random.below(8)) {
            (Standing::Inactive, _) => {
                level = Some((task, 1 + random.below(20)));
                Some(Event::Released { cpu, task, deadline: Instant(1000 + u64::from(step) + random.below(300)) })
            }
            (Standing::Suspended, 0..5) => Some(Event::Resumed { cpu, task }),
            (Standing::Linked(_) | Standing::Ready, 0..3) => Some(Event::Completed { cpu: at, task }),
            (Standing::Linked(_) | Standing::Ready, 3) => Some(Event::Suspended { cpu: at, task }),
            (_, 4 | 5) => Some(Event::Prioritized { task, level: (random.below(2000), task.0) }),
            // A section begins or ends.
            (Standing::Linked(_), _) if on.is_some() => {
                plain.sections[task.index()] = !in_section;
                None
            }
            _ => None,
        };
        if matches!(event, Some(Event::Completed { .. } | Event::Suspended { .. })) {
            plain.sections[task.index()] = false;
        }
        for at in 0..tasks {
            let is_in = u32::from(plain.sections[usize::from(at)]);
            let sections = live.views[0].sections(TaskId(at.into()));
            sections.store(is_in, Ordering::SeqCst);
        }
        let events: Vec<Event> = event.into_iter().collect();
        level.into_iter().for_each(|(task, level)| plain.policy.set_level(task, level));
        let of_live: Vec<(TaskId, Event)> = events.iter().map(|&event| (task, event)).collect();
        let view = random.below(2) as usize;
        let death = match random.below(200) {
            0 => Death::Before,
            1 => Death::After,
            _ => Death::None,
        };
        deaths += u32::from(death != Death::None);
        live.handle(view, &of_live, level, death);
        if death == Death::Before {
            // It did not happen, and now it does.
            assert_eq!(live.saved(1 - view), plain.saved(), "seed {seed}, step {step}: {event:?} has not happened");
            live.handle(1 - view, &of_live, level, Death::None);
        }
        plain.handle(Instant(u64::from(step)), &events);
        if step % 16 == 0 || death != Death::None {
            assert_eq!(live.saved(view), plain.saved(), "seed {seed}, step {step}: {event:?}, {death:?}");
        }
        let snapshot = live.views[1 - view].demand(task).load(Ordering::SeqCst);
        let placement = Placement::of_word(snapshot);
        let on = (0..cpus).map(CpuId).find(|&cpu| plain.policy.scheduled(cpu) == Some(task));
        if death != Death::After && !events.is_empty() {
            let is_running = placement.class == Class::Running;
            assert_eq!(is_running.then_some(placement.cpu).flatten(), on, "seed {seed}, step {step}: placed as linked");
        }
    }
    assert!(deaths > 0 || events < 1000, "some threads were killed");
}

#[test]
fn live_state_and_a_plain_policy_agree_after_each_of_a_million_events() {
    for (seed, (rule, cpus, tasks)) in
        [(Rule::Edf, 1, 5), (Rule::Edf, 3, 12), (Rule::RateMonotonic, 2, 8), (Rule::Given, 4, 20)]
            .into_iter()
            .enumerate()
    {
        agree(rule, cpus, tasks, 0x5eed + seed as u64, 250_000);
    }
}
