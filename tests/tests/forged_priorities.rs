//! The judge of policies against forged priorities: simulated traces of which one record of a priority is changed, left out or
//! added. A trace does not tell all protocols apart, so that some pass; most do not.

use std::collections::BTreeMap;

use laxity_model::rng::SplitMix64;
use laxity_model::{Instant, JobId, TaskId};
use laxity_tests::features::Feature;
use laxity_tests::judge::checked;
use laxity_tests::simulate;
use laxity_tests::systems::UNIT;
use laxity_trace::{Event, Record, TraceHeader, check};

/// What is done to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Forgery {
    /// A priority of another task is left out.
    NotRaised,
    /// A job's own priority is left out, which it had lent.
    NotGivenBack,
    /// It is above all.
    AboveAll,
    /// It is of another task.
    OtherTask,
    /// A job that executes is above all.
    Raised,
}

const ALL: [Forgery; 5] =
    [Forgery::NotRaised, Forgery::NotGivenBack, Forgery::AboveAll, Forgery::OtherTask, Forgery::Raised];

/// Whether the job of record `at` goes on as it is until a later instant, with no other record of its priority.
fn lasts(records: &[Record], at: usize, job: JobId) -> bool {
    let Record { at: now, .. } = records[at];
    let ends = |event: Event| match event {
        Event::Priority { job: other, .. } | Event::Complete { job: other, .. } => other == job,
        _ => false,
    };
    let rest = &records[at + 1..];
    let end = rest.iter().position(|record| ends(record.event));
    end.is_some_and(|end| rest[end].at > now)
}

/// The trace with one record forged, if there is one to forge.
fn forge(header: &TraceHeader, records: &[Record], how: Forgery, random: &mut SplitMix64) -> Option<Vec<Record>> {
    let is_job = |job: JobId| header.tasks[job.task.index()].kind.has_deadlines();
    let is_meant = |at: usize| match records[at].event {
        Event::Priority { job, level, of } if lasts(records, at, job) => match how {
            Forgery::NotRaised => is_job(job) && of != job.task,
            // Servers have new deadlines of their own.
            Forgery::NotGivenBack => is_job(job) && of == job.task && level != 0 && header.servers.is_empty(),
            Forgery::AboveAll => level != 0,
            Forgery::OtherTask => true,
            Forgery::Raised => false,
        },
        Event::Dispatch { job, .. } => how == Forgery::Raised && is_job(job) && lasts(records, at, job),
        _ => false,
    };
    let candidates: Vec<usize> = (0..records.len()).filter(|&at| is_meant(at)).collect();
    let at = *candidates.get(random.below(candidates.len().max(1) as u64) as usize)?;
    let mut forged = records.to_vec();
    match (how, &mut forged[at].event) {
        (Forgery::AboveAll, Event::Priority { level, .. }) => *level = 0,
        (Forgery::OtherTask, Event::Priority { of, .. }) => of.0 = (of.0 + 1) % header.tasks.len() as u32,
        (Forgery::Raised, &mut Event::Dispatch { job, .. }) => {
            let of = TaskId(job.task.0);
            let at_once = Record { event: Event::Priority { job, level: 0, of }, ..records[at] };
            forged.insert(at + 1, at_once);
        }
        _ => drop(forged.remove(at)),
    }
    (forged != records).then_some(forged)
}

#[test]
fn most_forged_priorities_are_found() {
    let mut counts: BTreeMap<Forgery, (u32, u32)> = BTreeMap::new();
    for feature in Feature::ALL {
        for seed in 0..12 {
            let (workload, scheduler) = feature.system(seed);
            if feature.may_be_refused() && !checked(&workload, &scheduler).refusals.is_empty() {
                continue;
            }
            let (header, records) = simulate(&workload, &scheduler, Instant(300 * UNIT), seed);
            let mut random = SplitMix64::new(seed);
            for how in ALL {
                let Some(forged) = forge(&header, &records, how, &mut random) else { continue };
                let (found, all) = counts.entry(how).or_default();
                let is_found = !check::policy(&header, &forged).is_clean();
                (*found, *all) = (*found + u32::from(is_found), *all + 1);
                if !is_found && std::env::var("LAXITY_SHOW").is_ok() {
                    eprintln!("{feature:?}, seed {seed}, {scheduler}: {how:?} passes");
                }
            }
        }
    }
    for (how, &(found, all)) in &counts {
        eprintln!("{how:?}: {found} of {all} found");
        assert!(all >= 20 && found * 10 >= all * 9, "{how:?}: {found} of {all} found");
    }
}
