//! Which entities of a cluster are inverted at an instant.

use laxity_model::JobId;

use super::InversionKind;
use super::entities::Entities;
use crate::replay::{Level, Replay};

/// The judge's working memory; nothing of it outlives a judgement.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    pub entitled_only: bool,
    marks: Vec<Marks>,
    /// Marks of other rounds are void: nothing need be cleared.
    round: u64,
    found: Vec<Found>,
}

/// An inverted entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub task: usize,
    pub job: JobId,
    pub kind: InversionKind,
}

/// The state of an entity on the CPUs.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    round: u64,
    /// A part of it runs on some CPU.
    runs: bool,
    /// A part of it runs on a CPU of the cluster.
    runs_here: bool,
    /// Its job is linked to a CPU and waits for overheads only.
    switched_in: bool,
    /// Its job needs a stack that a bottom half is on.
    blocked: bool,
    /// It was found to be inverted.
    inverted: Option<JobId>,
}

/// The state of a cluster's CPUs.
#[derive(Clone, Copy, Debug, Default)]
struct Survey {
    /// The lowest priority that runs.
    lowest: Option<Level>,
    /// The lowest priority of a bottom half that runs.
    lowest_bottom_half: Option<Level>,
    /// CPUs that run a second part of an entity.
    surplus: usize,
}

impl Judge {
    pub fn new(tasks: usize) -> Self {
        Judge { entitled_only: false, marks: vec![Marks::default(); tasks], round: 0, found: Vec::new() }
    }

    /// The inverted entities that were found last.
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    /// Which job of `task` was found to be inverted last.
    pub fn job_of(&self, task: usize) -> Option<JobId> {
        let marks = self.marks[task];
        marks.inverted.filter(|_| marks.round == self.round)
    }

    /// Finds the inverted entities of `cluster`.
    pub fn judge(&mut self, entities: &Entities, replay: &Replay, cluster: usize) {
        self.round += 1;
        self.found.clear();
        if !entities.has_bottom_halves(cluster) {
            return;
        }
        let mut survey = self.survey(entities, replay, cluster);
        let cpus = entities.cpus_of(cluster);
        for (rank, (level, task)) in entities.ready_in(cluster).enumerate() {
            let entitled = rank < cpus;
            let overruled = survey.lowest.is_some_and(|lowest| level < lowest);
            if (self.entitled_only && !entitled) || !(overruled || entitled && survey.surplus > 0) {
                // The entities that follow are less urgent still.
                break;
            }
            let marks = self.marks(task);
            if marks.runs || marks.switched_in {
                continue;
            }
            let blocked = marks.blocked;
            let kind = if overruled && entities.bottom_half_of(task, replay).is_some() {
                InversionKind::WaitingBottomHalf
            } else if overruled && blocked {
                InversionKind::BlockedStack
            } else if survey.lowest_bottom_half.is_some_and(|lowest| level < lowest) {
                InversionKind::Overtaken
            } else if entitled && survey.surplus > 0 {
                survey.surplus -= 1;
                InversionKind::CoScheduled
            } else {
                continue;
            };
            let waiting = entities.bottom_half_of(task, replay).filter(|_| kind == InversionKind::WaitingBottomHalf);
            let Some(job) = waiting.or_else(|| entities.representative(task, replay)) else { continue };
            self.marks(task).inverted = Some(job);
            self.found.push(Found { task, job, kind });
        }
    }

    fn survey(&mut self, entities: &Entities, replay: &Replay, cluster: usize) -> Survey {
        let mut survey = Survey::default();
        for (cpu, of) in entities.cpus() {
            let here = of == Some(cluster);
            if let Some(runner) = entities.runner(cpu, replay) {
                if here {
                    survey.lowest = survey.lowest.max(Some(runner.level));
                    if runner.is_bottom_half {
                        survey.lowest_bottom_half = survey.lowest_bottom_half.max(Some(runner.level));
                    }
                }
                if let Some(marks) = runner.entity.map(|entity| self.marks(entity)) {
                    survey.surplus += usize::from(here && marks.runs_here);
                    marks.runs = true;
                    marks.runs_here |= here;
                }
            }
            let queues = &replay.details().queues;
            let entity_of = |job: JobId| queues.owner_of(job).unwrap_or(job).task.index();
            let state = &replay.cpus()[cpu.index()];
            if state.bottom_half().is_some() {
                for job in [state.job(), queues.linked(cpu)].into_iter().flatten() {
                    if queues.is_ready(job) {
                        self.marks(entity_of(job)).blocked = true;
                    }
                }
            } else if let Some(job) = queues.linked(cpu).filter(|&job| !entities.is_thread(job)) {
                self.marks(entity_of(job)).switched_in = true;
            }
        }
        survey
    }

    fn marks(&mut self, task: usize) -> &mut Marks {
        let marks = &mut self.marks[task];
        if marks.round != self.round {
            *marks = Marks { round: self.round, ..Marks::default() };
        }
        marks
    }
}
