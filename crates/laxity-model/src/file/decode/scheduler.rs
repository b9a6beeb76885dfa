//! The scheduler: one word, or a table of its parts.

use super::fields;
use crate::error::{ErrorKind, Findings};
use crate::file::reader::{Fields, Item};
use crate::file::{INTERRUPTS, INVOCATIONS, QUANTA, READY_QUEUES, RULES, SCOPES};
use crate::{Scheduler, suggest};

/// The `scheduler` of a file; [`Scheduler::default`] where there is none.
pub(super) fn scheduler(file: &Fields<'_>, findings: &mut Findings) -> Scheduler {
    let Some(item) = file.get("scheduler") else { return Scheduler::default() };
    if matches!(item.node.value, crate::file::tree::Value::Text(_)) {
        return policy(&item, findings).map_or_else(Scheduler::default, |(scheduler, _)| scheduler);
    }
    let expected = "the name of a scheduler, as in \"G-EDF\", or a table of its parts";
    let Some(fields) = item.table(fields::SCHEDULER, expected, findings) else { return Scheduler::default() };
    let named = fields.get("policy").and_then(|item| policy(&item, findings));
    let (mut scheduler, said) = named.unwrap_or_default();
    let part = |key: &'static str, findings: &mut Findings| {
        let item = fields.get(key)?;
        if said.contains(&key) {
            let message = "is said by `policy` already; remove one of the two";
            item.report(ErrorKind::Contradiction, message, findings);
        }
        Some(item)
    };
    /// Sets one field from the word that stands for it.
    macro_rules! set {
        ($field:ident, $words:expr) => {
            if let Some(value) = part(stringify!($field), findings).and_then(|item| item.choice($words, findings)) {
                scheduler.$field = value;
            }
        };
    }
    set!(rule, RULES);
    set!(scope, SCOPES);
    set!(invocation, INVOCATIONS);
    set!(quanta, QUANTA);
    set!(interrupts, INTERRUPTS);
    set!(ready_queue, READY_QUEUES);
    if let Some(coarse_lock) = fields.get("coarse_lock").and_then(|item| item.boolean(findings)) {
        scheduler.coarse_lock = coarse_lock;
    }
    scheduler
}

/// The scheduler that `item` names, and the parts that the name has settled.
fn policy(item: &Item<'_>, findings: &mut Findings) -> Option<(Scheduler, Vec<&'static str>)> {
    const ALGORITHMS: [&str; 16] = [
        "G-EDF",
        "C-EDF",
        "P-EDF",
        "G-RM",
        "C-RM",
        "P-RM",
        "G-DM",
        "C-DM",
        "P-DM",
        "G-FP",
        "C-FP",
        "P-FP",
        "G-CFS",
        "C-CFS",
        "P-CFS",
        "SCHED_OTHER",
    ];
    let text = item.text("the name of a scheduler, as in \"G-EDF\" or \"C-RM/FEm\"", findings)?;
    match text.parse::<Scheduler>() {
        Ok(scheduler) => Some((scheduler, settled_by(text, &scheduler))),
        Err(error) => {
            let near = suggest::nearest(text, ALGORITHMS.into_iter().chain(Scheduler::MEASURED));
            let hint = near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            item.report(ErrorKind::BadValue, format_args!("names an {error}{hint}"), findings);
            None
        }
    }
}

fn settled_by(text: &str, scheduler: &Scheduler) -> Vec<&'static str> {
    let mut settled = Vec::new();
    let (algorithm, realization) = match text.split_once('/') {
        Some((algorithm, _)) => (Some(algorithm), true),
        None if text == scheduler.realization() => (None, true),
        None => (Some(text), false),
    };
    if let Some(algorithm) = algorithm {
        settled.push("rule");
        // `EDF` alone leaves the scope open.
        settled.extend(algorithm.contains('-').then_some("scope"));
    }
    if realization {
        settled.extend(["invocation", "quanta", "interrupts", "ready_queue"]);
    }
    settled
}
