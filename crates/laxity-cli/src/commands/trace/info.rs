//! `laxity trace FILE info`: what the trace is about.

use std::iter;
use std::path::Path;

use laxity_model::{CpuId, Instant, OverheadKind};
use laxity_trace::{Event, Origin, Sink, TaskKind, TraceHeader};

use super::read::Source;
use crate::error::CliError;
use crate::input;
use crate::output::Output;
use crate::quantity::{bytes, counted, short};
use crate::report::{describe, live_scheduler};
use crate::style::{FAINT, RESET, STRONG};

/// When the trace begins, and how many records of which kind it has.
#[derive(Default)]
struct Census {
    begin: Option<Instant>,
    releases: u64,
    completions: u64,
    dispatches: u64,
    overheads: u64,
    operations: u64,
    bottom_halves: u64,
    grants: u64,
    tokens: u64,
    stolen: u64,
    outside: u64,
    /// Of what Linux recorded of other threads and interrupts, and could not hand over.
    lost: u64,
    ended: bool,
}

impl Sink for Census {
    fn record(&mut self, at: Instant, event: Event) {
        self.begin.get_or_insert(at);
        match event {
            Event::Release { .. } => self.releases += 1,
            Event::Complete { .. } => self.completions += 1,
            Event::Dispatch { .. } => self.dispatches += 1,
            Event::Overhead { .. } | Event::LockWait { .. } | Event::CacheDelay { .. } => self.overheads += 1,
            Event::EngineBegin { .. } => self.operations += 1,
            Event::BottomHalfBegin { .. } | Event::Serve { .. } => self.bottom_halves += 1,
            Event::Grant { .. } => self.grants += 1,
            Event::Consume { tokens, .. } => self.tokens += u64::from(tokens),
            Event::Stolen { .. } => self.stolen += 1,
            Event::Outside { by: Some(_), .. } => self.outside += 1,
            Event::OutsidersLost { records, .. } => self.lost = self.lost.saturating_add(records),
            Event::End => self.ended = true,
            _ => {}
        }
    }
}

/// Prints the header and counts the records.
pub fn run(file: &Path, output: &mut Output) -> Result<(), CliError> {
    let source = Source::open(file)?;
    let header = source.header().clone();
    let mut census = Census::default();
    let ending = source.stream(&mut census);
    let mut line = |label: &str, value: String| output.line(format_args!("{FAINT}{label:<11}{RESET}{value}"));
    line("trace", format!("{STRONG}{}{RESET}", input::name(file)))?;
    line("workload", header.workload.clone())?;
    line(
        "origin",
        match header.origin {
            Origin::Simulated => format!("simulated, seed {}", header.seed),
            Origin::Live => "recorded live".to_owned(),
        },
    )?;
    match header.origin {
        Origin::Simulated => simulated(&header, &mut line)?,
        Origin::Live => {
            line("scheduler", live_scheduler(&header))?;
            line("CPUs", header.cpus.to_string())?;
        }
    }
    line("tasks", tasks(&header))?;
    for (label, value) in devices(&header) {
        line(label, value)?;
    }
    let begin = census.begin.unwrap_or(Instant::ZERO);
    let end = if census.ended { "" } else { ", where it was cut off" };
    line("time", format!("{begin} to {}{end}", ending.reached))?;
    line("records", format!("{}{}", ending.records, size(file, ending.records)))?;
    line(
        "",
        format!(
            "{}, {}, {}, {}",
            counted(census.releases, "release"),
            counted(census.completions, "completion"),
            counted(census.dispatches, "dispatch").replace("dispatchs", "dispatches"),
            counted(census.overheads, "overhead")
        ),
    )?;
    let rest = [
        (census.operations, "GPU operation"),
        (census.bottom_halves, "bottom half"),
        (census.grants, "lock grant"),
        (census.tokens, "token"),
        (census.stolen, "time that a CPU was stolen"),
        (census.outside, "time that another thread or an interrupt had a CPU"),
    ];
    let rest: Vec<String> = rest
        .into_iter()
        .filter(|&(count, _)| count > 0)
        .map(|(count, noun)| match noun.strip_prefix("time") {
            Some(that) => format!("{}{that}", counted(count, "time")),
            None => counted(count, noun).replace("halfs", "halves"),
        })
        .collect();
    if !rest.is_empty() {
        line("", rest.join(", "))?;
    }
    if census.lost > 0 {
        let lost = counted(census.lost, "record");
        line("lost", format!("{lost} of other threads and interrupts, for which Linux found no room"))?;
    }
    ending.whole()
}

/// Lines that only simulated schedules have: quanta, clusters, modelled overheads.
fn simulated(
    header: &TraceHeader,
    line: &mut impl FnMut(&str, String) -> Result<(), CliError>,
) -> Result<(), CliError> {
    line("scheduler", format!("{} ({})", header.scheduler, describe(&header.scheduler)))?;
    line("CPUs", format!("{}: {}", header.cpus, clusters(&header.clusters)))?;
    line("quantum", header.quantum.to_string())?;
    let costs: Vec<String> = OverheadKind::ALL
        .into_iter()
        .filter(|&kind| !header.costs.of(kind).is_zero())
        .map(|kind| format!("{} {}", kind.name().replace('_', " "), short(header.costs.of(kind))))
        .collect();
    line("overheads", if costs.is_empty() { "none".to_owned() } else { costs.join(", ") })
}

/// `5`, or `5 and 2 interrupt threads`.
fn tasks(header: &TraceHeader) -> String {
    let count = |wanted| header.tasks.iter().filter(|task| task.kind == wanted).count() as u64;
    let (threads, callbacks) = (count(TaskKind::Thread), count(TaskKind::Callback));
    let best_effort = count(TaskKind::BestEffort);
    let tasks = header.tasks.len() as u64 - threads - callbacks - best_effort;
    let others = [(threads, "interrupt thread"), (callbacks, "callback thread"), (best_effort, "best-effort task")];
    let others = others.into_iter().filter(|&(count, _)| count > 0).map(|(count, noun)| counted(count, noun));
    iter::once(tasks.to_string()).chain(others).collect::<Vec<String>>().join(" and ")
}

/// Lines that only some workloads have.
fn devices(header: &TraceHeader) -> Vec<(&'static str, String)> {
    let names = |all: Vec<&str>| all.join(", ");
    let mut lines = Vec::new();
    if !header.gpus.is_empty() {
        let gpus = header.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        lines.push(("GPUs", format!("{}; arbitration {}", names(gpus), header.arbitration)));
    }
    if !header.devices.is_empty() {
        let devices = header.devices.iter().map(|device| device.name.as_str()).collect();
        lines.push(("interrupts", format!("of {}; handling {}", names(devices), header.handling.name())));
    }
    if !header.locks.is_empty() {
        lines.push(("locks", names(header.locks.iter().map(|lock| lock.name.as_str()).collect())));
    }
    for graph in &header.graphs {
        let nodes = counted(graph.nodes.len() as u64, "node");
        lines.push(("graph", format!("{}, {nodes}", graph.name)));
    }
    lines
}

/// `, 1.2 MB, 4.3 bytes each`.
fn size(file: &Path, records: u64) -> String {
    match std::fs::metadata(file) {
        Ok(data) if data.is_file() && records > 0 => {
            format!(", {}, {:.1} bytes each", bytes(data.len()), data.len() as f64 / records as f64)
        }
        _ => String::new(),
    }
}

/// `0-3 | 4-7`.
fn clusters(clusters: &[Vec<CpuId>]) -> String {
    let texts: Vec<String> = clusters.iter().map(|cpus| ranges(cpus)).collect();
    texts.join(" | ")
}

/// CPU numbers as Linux writes them.
fn ranges(cpus: &[CpuId]) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu.0) => *last = cpu.0,
            _ => ranges.push((cpu.0, cpu.0)),
        }
    }
    let text = |&(first, last): &(u16, u16)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_listed_as_linux_does() {
        assert_eq!(clusters(&[vec![CpuId(0), CpuId(1), CpuId(2)], vec![CpuId(3), CpuId(7)]]), "0-2 | 3,7");
    }
}
