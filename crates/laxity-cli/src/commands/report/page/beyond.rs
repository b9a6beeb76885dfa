//! Jobs that took longer than was proven, and what the machine had to do with it.

use laxity_model::Nanos;
use laxity_trace::why::{Account, Blame};
use laxity_trace::{Origin, OutsiderKind};

use crate::commands::report::gather::Evidence;
use crate::commands::report::observed::Observed;
use crate::quantity::{counted, short};

/// The longest job of a task, beyond its bound.
pub struct Beyond<'a> {
    name: &'a str,
    bound: Nanos,
    /// What it was spent with.
    pub account: &'a Account,
}

impl Beyond<'_> {
    /// How long its CPU carried out no thread meanwhile.
    fn stolen(&self) -> Nanos {
        let parts = self.account.parts();
        parts.iter().find(|part| part.blame == Blame::Stolen).map_or(Nanos::ZERO, |part| part.time)
    }

    /// How long other threads of the machine had its CPU, or the one that it waited for.
    fn robbed(&self) -> Nanos {
        let is_thread = |blame: Blame| matches!(blame, Blame::Outside(by) if by.kind == OutsiderKind::Thread);
        Nanos(self.account.parts().iter().filter(|part| is_thread(part.blame)).map(|part| part.time.0).sum())
    }

    fn excess(&self) -> Nanos {
        Nanos(self.account.time().0.saturating_sub(self.bound.0))
    }

    fn describe(&self) -> String {
        let stolen = match self.stolen() {
            Nanos::ZERO => String::new(),
            stolen => format!("; its CPU was stolen for {}", short(stolen)),
        };
        let robbed = match self.robbed() {
            Nanos::ZERO => String::new(),
            robbed => format!("; other threads of the machine had its CPU for {}", short(robbed)),
        };
        format!("{} ({} over {}{stolen}{robbed})", self.name, short(self.account.time()), short(self.bound))
    }
}

/// The tasks whose longest job took longer than was proven, in their order; none where the bounds are about something else.
pub fn found<'a>(evidence: &'a Evidence, observed: &'a Observed) -> Vec<Beyond<'a>> {
    let Some(proof) = evidence.proof.as_ref().filter(|_| observed.unbounded.is_none()) else { return Vec::new() };
    let tasks = observed.tasks.iter().zip(&proof.tasks);
    let beyond = tasks.filter_map(|(seen, proven)| {
        let (account, bound) = (seen.latest.as_ref()?, proven.response_time?.time);
        (account.time() > bound).then_some(Beyond { name: &proven.name, bound, account })
    });
    beyond.collect()
}

/// That there are some, and the likely reason.
pub fn sentence(evidence: &Evidence, observed: &Observed) -> Option<String> {
    let found = found(evidence, observed);
    if found.is_empty() {
        return None;
    }
    let worst = found
        .iter()
        .max_by_key(|beyond| u128::from(beyond.account.time().0) * 1_000 / u128::from(beyond.bound.0.max(1)));
    let worst = worst.map_or(String::new(), Beyond::describe);
    let others = match found.len() - 1 {
        0 => String::new(),
        others => format!(" and {}", counted(others as u64, "other task")),
    };
    let why = match found.iter().all(|beyond| beyond.stolen() + beyond.robbed() >= beyond.excess()) {
        true => "No bound knows of time in which the machine has no CPU for the tasks, and that is all of it",
        false if observed.header.origin == Origin::Simulated => {
            "A simulation charges just what is analysed: it is of another workload than the proof, or the analysis has a defect; \
             please report that, with the workload"
        }
        false => {
            "The bounds hold for the overheads that were charged, and this machine costs more; `laxity measure` finds \
             out what it costs"
        }
    };
    Some(format!("Longer than proven, {}: {worst}{others}. {why}.", observed.label))
}
