//! A report for people.

use laxity_model::{
    Invocation, Nanos, OverheadCosts, PriorityRule, Quanta, ReadyQueueKind, ReleaseInterrupts, Scheduler,
};
use laxity_trace::{LinuxClass, Origin, TraceHeader};

use super::{Report, chains, cpu_time, devices, memory, outside, stolen, tasks};
use crate::quantity::{counted, short};
use crate::style;

/// The report as lines and tables of at most `width` columns; with `per_cpu`, a row for each CPU.
pub fn text(report: &Report, per_cpu: bool, width: Option<usize>) -> String {
    let mut out = heading(report);
    out.push('\n');
    out.push_str(&tasks::table(report).render(width));
    out.push('\n');
    let of_devices = devices::tables(report).into_iter().chain(memory::tables(report));
    for table in of_devices.chain(stolen::table(report)).chain(outside::table(report)) {
        out.push_str(&table.render(width));
        out.push('\n');
    }
    out.push_str(&cpu_time::sources(report).render(width));
    if per_cpu {
        out.push('\n');
        out.push_str(&cpu_time::cpus(report).render(width));
    }
    out.push('\n');
    out.push_str(&verdict(report));
    out
}

/// What was scheduled, where, how and for how long.
fn heading(report: &Report) -> String {
    let header = &report.header;
    let utilization = tasks::utilization(report) as f64 / tasks::ONE as f64;
    let tasks = counted(report.tasks().count() as u64, "task");
    let mut out = format!("{}{}{}\n", style::STRONG, header.workload, style::RESET);
    let mut line = |label: &str, value: String| {
        out.push_str(&format!("{}{label:<11}{}{value}\n", style::FAINT, style::RESET));
    };
    let is_live = header.origin == Origin::Live;
    match is_live {
        // Worst-case execution times that were not declared.
        true => line("tasks", tasks),
        false => line("tasks", format!("{tasks}, utilization {utilization:.2} at worst")),
    }
    line("platform", platform(header));
    match is_live {
        true => line("scheduler", live_scheduler(header)),
        false => line("scheduler", format!("{} ({})", header.scheduler, describe(&header.scheduler))),
    }
    if report.has_devices() {
        line("GPUs", devices::describe(report));
    }
    if !is_live {
        line("overheads", overheads(report));
        line("seed", header.seed.to_string());
    }
    line(
        "time",
        match header.origin {
            Origin::Simulated => format!("{} simulated{}", report.summary.duration, cut_short(report)),
            Origin::Live => format!("{} recorded live{}", report.summary.duration, cut_short(report)),
        },
    );
    out
}

fn cut_short(report: &Report) -> String {
    report.cut_short.map_or(String::new(), |asked| format!(" of {asked}: interrupted"))
}

/// `4 CPUs in 1 cluster, quantum 1 ms`.
fn platform(header: &TraceHeader) -> String {
    let cpus = counted(header.cpus as u64, "CPU");
    let scheduled: usize = header.clusters.iter().map(Vec::len).sum();
    let dedicated = if scheduled < header.cpus { ", cpu0 for interrupts alone" } else { "" };
    let clusters = match header.clusters.len() {
        1 => String::new(),
        count => format!(" in {count} clusters"),
    };
    let quantum = match header.origin {
        Origin::Simulated => format!(", quantum {}", header.quantum),
        Origin::Live => String::new(),
    };
    let folded = header.folded_from.map_or(String::new(), |from| format!(", in place of {from}"));
    format!("{cpus}{clusters}{dedicated}{quantum}{folded}")
}

/// What scheduled the tasks of a live trace, for people: Laxity's scheduler, or Linux.
pub fn live_scheduler(header: &TraceHeader) -> String {
    if header.follows_scheduler() {
        return format!("{}, live", header.scheduler);
    }
    match header.linux_class {
        None => "Linux".to_owned(),
        Some(LinuxClass::Kernel) => format!("{}, live, in the kernel", header.scheduler),
        Some(class) => format!("Linux, {}", class.name()),
    }
}

/// A scheduler in words.
pub fn describe(scheduler: &Scheduler) -> String {
    let interrupts = match scheduler.interrupts {
        ReleaseInterrupts::Global => "interrupts on all CPUs",
        ReleaseInterrupts::Dedicated => "interrupts on a dedicated CPU",
    };
    if scheduler.rule == PriorityRule::Fair {
        return format!("Linux's fair class, a queue for each CPU, {interrupts}");
    }
    let queue = match scheduler.ready_queue {
        ReadyQueueKind::Coarse => "coarse-grained queue",
        ReadyQueueKind::Fine => "fine-grained queue",
        ReadyQueueKind::Hierarchical => "hierarchical queue",
    };
    let invocation = match (scheduler.invocation, scheduler.quanta) {
        (Invocation::EventDriven, _) => "event-driven",
        (Invocation::QuantumDriven, Quanta::Aligned) => "aligned quanta",
        (Invocation::QuantumDriven, Quanta::Staggered) => "staggered quanta",
    };
    format!("{queue}, {invocation}, {interrupts}")
}

fn overheads(report: &Report) -> String {
    let none = report.header.costs == OverheadCosts::default();
    match (&report.overheads, none) {
        (Some(name), true) if name == "none" => "none".to_owned(),
        (Some(name), _) => format!("{name}, at {}", counted(report.tasks().count() as u64, "task")),
        (None, true) => "none".to_owned(),
        (None, false) => {
            let costs = report.header.costs;
            let [release, scheduling, switch] = [costs.release, costs.scheduling, costs.context_switch].map(short);
            format!("release {release}, scheduling {scheduling}, context switch {switch}, ...")
        }
    }
}

/// The sentence people look for.
fn verdict(report: &Report) -> String {
    let total = &report.summary.total;
    let released = counted(total.released, "job");
    let late_chains = chains::verdict(&report.summary);
    if total.missed == 0 && !late_chains.is_empty() {
        let (bad, reset) = (style::BAD, style::RESET);
        return format!("{bad}no job of {released} missed its deadline{reset}{late_chains}\n");
    }
    if total.missed == 0 && total.laxity_min.is_none() && total.completed > 0 {
        return format!("no deadline in {released}\n");
    }
    if total.missed == 0 {
        let least = total.laxity_min.filter(|laxity| laxity.0 >= 0).map_or(String::new(), |laxity| {
            let task = tightest(report).map_or(String::new(), |name| format!(" ({name})"));
            format!("; least laxity {}{task}", short(Nanos(laxity.0.unsigned_abs())))
        });
        return format!("{}no deadline missed{} in {released}{least}\n", style::GOOD, style::RESET);
    }
    let tasks = report.summary.tasks.iter().filter(|task| task.jobs.missed > 0).count();
    let of = counted(report.summary.tasks.len() as u64, "task");
    // None of a job that completed, where those that missed did not.
    let tardiness = total.tardiness.filter(|tardiness| !tardiness.max.is_zero());
    let tardiness = tardiness.map_or(String::new(), |tardiness| format!("; tardy by at most {}", short(tardiness.max)));
    let incomplete = match total.missed_incomplete {
        0 => String::new(),
        count => format!(", {count} of them still incomplete at the end"),
    };
    format!(
        "{}{} of {released} missed{} their deadlines, in {tasks} of {of}{tardiness}{incomplete}{late_chains}\n",
        style::BAD,
        total.missed,
        style::RESET
    )
}

/// The task whose job came closest to its deadline.
fn tightest(report: &Report) -> Option<&str> {
    let least = report.summary.total.laxity_min?;
    report.summary.tasks.iter().find(|task| task.jobs.laxity_min == Some(least)).map(|task| task.name.as_str())
}
