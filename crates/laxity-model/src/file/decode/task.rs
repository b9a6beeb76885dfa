//! Tasks, real-time and best-effort.

use super::body::{body, distribution};
use super::own_code::own_code;
use super::{Names, fields};
use crate::error::{ErrorKind, Findings};
use crate::file::reader::{Fields, Item};
use crate::file::{ARRIVALS, SERVERS};
use crate::{Arrival, BestEffortTask, Distribution, Nanos, Task, TaskServer};

/// An element of `[[task]]`.
pub(super) fn task(item: &Item<'_>, names: &Names, findings: &mut Findings) -> Task {
    let expected = "a table with `name`, `period` and `wcet`";
    let Some(fields) = item.table(fields::TASK, expected, findings) else {
        return Task::periodic("", Nanos::ZERO, Nanos::ZERO);
    };
    let period = fields.require("period", "`period = \"10 ms\"`", findings).and_then(|item| item.span(findings));
    let period = period.unwrap_or(Nanos::ZERO);
    let mut span = |key, default| fields.get(key).and_then(|item| item.span(findings)).unwrap_or(default);
    Task {
        period,
        deadline: span("deadline", period),
        phase: span("phase", Nanos::ZERO),
        jitter: span("jitter", Nanos::ZERO),
        name: fields.name(findings),
        arrival: arrival(&fields, "tasks", findings),
        priority: fields.get("priority").and_then(|item| item.integer_u32(findings)),
        cluster: fields.get("cluster").and_then(|item| item.integer_u32(findings)).map(|index| index as usize),
        working_set: fields.get("working_set").and_then(|item| item.size(findings)),
        server: server(&fields, findings),
        memory_demand: fields.get("memory_demand").and_then(|item| item.rate(findings)).unwrap_or(0),
        memory_budget: fields.get("memory_budget").and_then(|item| item.rate(findings)),
        body: body(&fields, names, findings),
        run: own_code(&fields, findings),
    }
}

/// `server`, or `budget`, its short form.
pub(super) fn server(fields: &Fields<'_>, findings: &mut Findings) -> Option<TaskServer> {
    let short = fields.get("budget");
    let Some(item) = fields.get("server") else {
        return short.and_then(|item| item.span(findings)).map(TaskServer::hard);
    };
    if let Some(short) = short {
        let message = "is the short form of a `server` of kind \"cbs_hard\"; write one of them";
        short.report(ErrorKind::Contradiction, message, findings);
    }
    let expected = "a table, as in `{ kind = \"cbs_soft\", budget = \"1 ms\", period = \"10 ms\" }`";
    let fields = item.table(fields::TASK_SERVER, expected, findings)?;
    let kind = fields.require("kind", "`kind = \"cbs_soft\"`", findings).and_then(|it| it.choice(SERVERS, findings));
    let budget = fields.require("budget", "`budget = \"1 ms\"`", findings).and_then(|item| item.span(findings));
    let period = fields.get("period").and_then(|item| item.span(findings));
    Some(TaskServer { kind: kind?, budget: budget?, period })
}

/// `what` are the things that arrive, for the message.
pub(super) fn arrival(fields: &Fields<'_>, what: &str, findings: &mut Findings) -> Arrival {
    let is_sporadic = fields.get("arrival").and_then(|item| item.choice(ARRIVALS, findings)).unwrap_or(false);
    let gap = fields.get("gap");
    if is_sporadic {
        let gap = gap.and_then(|item| distribution(&item, findings));
        return Arrival::Sporadic { gap: gap.unwrap_or(Distribution::WorstCase) };
    }
    if let Some(gap) = gap {
        let message = format!("belongs to sporadic {what}; write `arrival = \"sporadic\"` or remove it");
        gap.report(ErrorKind::Contradiction, message, findings);
    }
    Arrival::Periodic
}

/// An element of `[[best_effort]]`.
pub(super) fn best_effort(item: &Item<'_>, findings: &mut Findings) -> BestEffortTask {
    let mut task = BestEffortTask::endless("");
    let Some(fields) = item.table(fields::BEST_EFFORT, "a table with `name`", findings) else { return task };
    task.name = fields.name(findings);
    if let Some(weight) = fields.get("weight").and_then(|item| item.integer_u32(findings)) {
        task.weight = weight;
    }
    if let Some(demand) = fields.get("memory_demand").and_then(|item| item.rate(findings)) {
        task.memory_demand = demand;
    }
    task.cpu = fields.get("cpu").and_then(|item| item.integer_u32(findings)).map(|cpu| cpu as usize);
    task.work = fields.get("work").and_then(|item| item.span(findings));
    task
}
