//! The page.

mod beyond;
mod chains;
mod laxity;
mod markup;
mod strips;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use laxity_analysis::check::{Criterion, Status};
use laxity_model::{Instant, JobId, Nanos, SignedNanos, TaskId};
use laxity_trace::TaskKind;
use laxity_trace::gantt::{self, SvgOptions, Window};
use laxity_trace::why::{Account, job_name};

use self::markup::{bad, data_uri, escape, table};
use self::strips::{COLOURS, Strips};
use super::gather::Evidence;
use super::observed::{Observed, TaskTimes, percentile};
use crate::quantity::{TimeUnit, counted, percent, short};

/// Gantt charts of more jobs than this are hard to read.
const WORST: usize = 2;

/// The page as HTML. It needs nothing but itself.
pub fn html(evidence: &Evidence) -> String {
    let mut out = String::new();
    let name = escape(&evidence.name);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{name}</title>\n<style>\n{}</style>\n</head>\n<body>\n\
         <h1>{name}</h1>\n<p class=\"faint\">laxity {}, of {}</p>\n",
        include_str!("page.css"),
        env!("CARGO_PKG_VERSION"),
        evidence.files.iter().map(|file| format!("<code>{}</code>", escape(file))).collect::<Vec<_>>().join(", ")
    );
    out.push_str(&body(evidence));
    out.push_str("</body>\n</html>\n");
    out
}

/// The body for another page: its headings begin with the third level.
pub fn part(evidence: &Evidence) -> String {
    // Text from elsewhere has no tags: they are escaped.
    let deeper = |page: String, from: u8| page.replace(&format!("h{from}>"), &format!("h{}>", from + 1));
    deeper(deeper(body(evidence), 3), 2)
}

fn body(evidence: &Evidence) -> String {
    let mut out = String::from("<div class=\"verdict\">\n");
    for line in verdict(evidence) {
        let _ = writeln!(out, "<p>{}</p>", markup::with_code(&line));
    }
    out.push_str("</div>\n");
    for part in [times, chains::table, spending, worst, set_up] {
        out.push_str(&part(evidence));
    }
    out
}

/// What the page says, in a few sentences.
pub fn verdict(evidence: &Evidence) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(evidence.proof.as_ref().map(|proof| {
        let hard = proof.finding(Criterion::Hard);
        let is_of_a_chain = |message: &str| {
            proof.chains.iter().any(|chain| message.starts_with(&format!("chain \"{}\": ", chain.name)))
        };
        let why = || {
            let first = hard.failures.first().map(|failure| failure.message.clone());
            // Chains are of interest beside whichever task is first.
            let chains = hard.failures.iter().skip(1).filter(|failure| is_of_a_chain(&failure.message));
            let said: Vec<String> = first.into_iter().chain(chains.map(|failure| failure.message.clone())).collect();
            if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) }
        };
        match hard.status {
            Status::Schedulable => {
                let least = proof.tasks.iter().filter_map(|task| Some((task.laxity?, &task.name))).min();
                let least = least.map_or(String::new(), |(laxity, name)| {
                    format!("; {name} has the least laxity, {}", signed(laxity))
                });
                format!("Proven: every job meets its deadline{least}.")
            }
            Status::NotProven if proof.soft.is_schedulable() => {
                format!("Not proven that every job meets its deadline, but tardiness is bounded{}.", why())
            }
            Status::NotProven => format!("Not proven that every job meets its deadline{}.", why()),
            Status::Infeasible => format!("No scheduler can meet every deadline{}.", why()),
            Status::Refused => {
                let reasons: Vec<String> =
                    proof.refusals.iter().map(|refusal| format!("{}: {}", refusal.subject, refusal.reason)).collect();
                format!("Nothing is proven. {}.", reasons.join("; "))
            }
        }
    }));
    for observed in &evidence.observed {
        let total = &observed.summary.total;
        let jobs = counted(total.released, "job");
        let latest = observed.latest().first().map_or(String::new(), |account| {
            let name = job_name(&observed.header, account.job);
            if observed.header.has_made_up_deadlines(account.job.task) {
                return format!("; {name} took the longest: {}", short(account.time()));
            }
            let deadline = account.deadline.saturating_since(account.arrival);
            format!("; {name} used most of its deadline: {} of {}", short(account.time()), short(deadline))
        });
        let outputs: u64 = observed.summary.chains.iter().map(|chain| chain.missed).sum();
        let outputs = match outputs {
            0 => String::new(),
            count => format!(", {} of chains late", counted(count, "output")),
        };
        lines.push(format!("{}: {} of {jobs} late{outputs}{latest}.", capital(&observed.label), total.missed));
        lines.extend(beyond::sentence(evidence, observed));
    }
    lines
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn signed(span: SignedNanos) -> String {
    let text = short(Nanos(span.0.unsigned_abs()));
    if span.0 < 0 { format!("-{text}") } else { text }
}

/// A task or graph of the page, and where its numbers are.
struct Subject {
    name: String,
    period: Option<Nanos>,
    deadline: Option<Nanos>,
    bound: Option<Nanos>,
    /// For each of what was observed.
    times: Vec<Vec<Nanos>>,
    missed: Vec<Option<u64>>,
}

/// The tasks and nodes in the order of the first trace, then what other traces have beside.
fn tasks(evidence: &Evidence) -> Vec<Subject> {
    let mut names: Vec<(String, Option<Nanos>, Option<Nanos>)> = Vec::new();
    let mut seen = BTreeSet::new();
    for observed in &evidence.observed {
        for (task, number) in observed.header.tasks.iter().zip(0..).filter(|(task, _)| task.kind.has_deadlines()) {
            if seen.insert(task.name.clone()) {
                let deadline = Some(task.deadline).filter(|_| !observed.header.has_made_up_deadlines(TaskId(number)));
                // Sporadic jobs of programs are as far apart as two instants are.
                let period = Some(task.period).filter(|&period| period > Nanos(1));
                names.push((task.name.clone(), period, deadline));
            }
        }
    }
    let subject = |(name, period, deadline): (String, Option<Nanos>, Option<Nanos>)| {
        let of = |observed: &Observed| observed.header.tasks.iter().position(|task| task.name == name);
        let bound = evidence.proof.as_ref().and_then(|proof| {
            let index = evidence.observed.iter().find_map(of)?;
            proof.tasks.get(index)?.response_time.map(|bound| bound.time)
        });
        let times =
            |observed: &Observed| of(observed).map_or_else(Vec::new, |index| observed.tasks[index].times.clone());
        let missed = |observed: &Observed| {
            observed.summary.tasks.iter().find(|task| task.name == name).map(|task| task.jobs.missed)
        };
        Subject {
            period,
            deadline,
            bound,
            times: evidence.observed.iter().map(times).collect(),
            missed: evidence.observed.iter().map(missed).collect(),
            name,
        }
    };
    names.into_iter().map(subject).collect()
}

/// The graphs, from end to end.
fn graphs(evidence: &Evidence) -> Vec<Subject> {
    let Some(first) = evidence.observed.first() else { return Vec::new() };
    let subject = |(index, graph): (usize, &laxity_trace::GraphInfo)| {
        let bound = evidence.proof.as_ref().and_then(|proof| proof.graphs.get(index)?.end_to_end);
        let times = |observed: &Observed| {
            let place = observed.header.graphs.iter().position(|other| other.name == graph.name);
            place.map_or_else(Vec::new, |place| observed.graphs[place].clone())
        };
        Subject {
            name: format!("{}, end to end", graph.name),
            period: None,
            deadline: None,
            bound,
            times: evidence.observed.iter().map(times).collect(),
            missed: vec![None; evidence.observed.len()],
        }
    };
    first.header.graphs.iter().enumerate().map(subject).collect()
}

fn times(evidence: &Evidence) -> String {
    let subjects: Vec<Subject> = graphs(evidence).into_iter().chain(tasks(evidence)).collect();
    if subjects.is_empty() {
        return String::new();
    }
    let spans = subjects.iter().flat_map(|subject| {
        let longest = subject.times.iter().filter_map(|times| times.last().copied());
        longest.chain(subject.bound).chain(subject.deadline).collect::<Vec<_>>()
    });
    let unit = TimeUnit::for_longest(spans.max().unwrap_or(Nanos(1)));
    let mut out = format!("<h2>Response times, {}</h2>\n", unit.name);
    let mut heads = vec!["".to_owned(), "period".to_owned(), "deadline".to_owned()];
    if evidence.proof.is_some() {
        heads.push("proven bound".to_owned());
    }
    for (index, observed) in evidence.observed.iter().enumerate() {
        let key = format!("<span class=\"key\" style=\"background:{}\"></span>", COLOURS[index % COLOURS.len()]);
        let label = escape(&observed.label);
        heads.push(format!("{key}{label}: median"));
        heads.extend(["p99".to_owned(), "max".to_owned(), "late".to_owned()]);
    }
    heads.push("least laxity".to_owned());
    let rows: Vec<Vec<String>> = subjects.iter().map(|subject| row(subject, unit, evidence)).collect();
    out.push_str(&table(&heads.iter().map(String::as_str).collect::<Vec<_>>(), &rows, &[], 1));
    let unbounded = |observed: &Observed| Some((observed.label.clone(), observed.unbounded.clone()?));
    for (label, why) in evidence.observed.iter().filter_map(unbounded).filter(|_| evidence.proof.is_some()) {
        let _ = writeln!(out, "<p>The bounds are not about {}: {}.</p>", escape(&label), escape(&why));
    }
    out.push_str("<div class=\"plots\">\n");
    let labels: Vec<&str> = evidence.observed.iter().map(|observed| observed.label.as_str()).collect();
    for subject in subjects.iter().filter(|subject| subject.times.iter().any(|times| !times.is_empty())) {
        let rows = labels.iter().zip(&subject.times).map(|(&label, times)| (label, times.as_slice())).collect();
        let picture = strips::draw(&Strips { rows, bound: subject.bound, deadline: subject.deadline });
        let _ = writeln!(out, "<figure><h3>{}</h3>{picture}</figure>", escape(&subject.name));
    }
    out.push_str(
        "</div>\n<p class=\"faint\">Columns are as high as the share of jobs that took so long, relative to the highest; a \
         column that is not empty can always be seen. Times beyond thrice bound and deadline are in the last.</p>\n",
    );
    out
}

fn row(subject: &Subject, unit: TimeUnit, evidence: &Evidence) -> Vec<String> {
    let span = |span: Option<Nanos>| span.map_or_else(|| "-".to_owned(), |span| unit.show(span));
    let mut row = vec![escape(&subject.name), span(subject.period), span(subject.deadline)];
    if evidence.proof.is_some() {
        row.push(match subject.bound.zip(subject.deadline) {
            Some((bound, deadline)) if bound > deadline => bad(&unit.show(bound)),
            _ => span(subject.bound),
        });
    }
    for ((times, missed), observed) in subject.times.iter().zip(&subject.missed).zip(&evidence.observed) {
        let longest = times.last().copied();
        let bound = subject.bound.filter(|_| observed.unbounded.is_none());
        row.push(span(percentile(times, 50)));
        row.push(span(percentile(times, 99)));
        let is_beyond = longest.zip(bound.or(subject.deadline)).is_some_and(|(longest, most)| longest > most);
        row.push(if is_beyond { bad(&span(longest)) } else { span(longest) });
        row.push(match missed {
            None => "-".to_owned(),
            Some(0) => "0".to_owned(),
            Some(count) => bad(&count.to_string()),
        });
    }
    let longest = subject.times.iter().filter_map(|times| times.last()).max();
    row.push(match longest.zip(subject.deadline) {
        None => "-".to_owned(),
        Some((longest, deadline)) => {
            let laxity = SignedNanos(deadline.0 as i64 - longest.0 as i64);
            let shown = unit.show_signed(laxity);
            if laxity.0 < 0 { bad(&shown) } else { shown }
        }
    });
    row
}

/// What jobs were spent with.
fn spending(evidence: &Evidence) -> String {
    let mut out = String::new();
    for observed in &evidence.observed {
        let all = observed.header.tasks.iter().zip(&observed.tasks).zip(0..);
        let tasks: Vec<(&str, Nanos, &TaskTimes)> = all
            .filter(|((_, times), task)| !observed.header.lacks_deadlines(TaskId(*task)) && !times.times.is_empty())
            .map(|((info, times), _)| (info.name.as_str(), info.deadline, times))
            .collect();
        let bars: Vec<laxity::Bar> =
            tasks.iter().flat_map(|&(name, deadline, task)| laxity::bars(name, task, deadline)).collect();
        if bars.is_empty() {
            continue;
        }
        let label = escape(&capital(&observed.label));
        let _ = writeln!(out, "<h3>{label}</h3>\n<figure>{}</figure>", laxity::draw(&bars));
    }
    if out.is_empty() {
        return out;
    }
    let keys = laxity::Kind::ALL.map(|kind| {
        let (colour, words) = (kind.colour(), escape(kind.words()));
        format!("<span class=\"whole\"><span class=\"key\" style=\"background:{colour}\"></span>{words}</span>")
    });
    format!(
        "<h2>Where the laxity went</h2>\n<p>What a job was spent with from its arrival to its completion, relative to its \
         deadline: what is free before the line is its laxity.</p>\n<p class=\"faint\">{}</p>\n{out}",
        keys.join(" ")
    )
}

/// The latest jobs, each with its account and a picture of the schedule around it.
fn worst(evidence: &Evidence) -> String {
    let mut out = String::new();
    for observed in &evidence.observed {
        let mut accounts = observed.latest();
        // What took longer than was proven comes first; the order is kept otherwise.
        let beyond: Vec<JobId> = beyond::found(evidence, observed).iter().map(|found| found.account.job).collect();
        accounts.sort_by_key(|account| !beyond.contains(&account.job));
        for account in accounts.into_iter().take(WORST) {
            out.push_str(&explained(observed, account));
        }
    }
    if out.is_empty() { out } else { format!("<h2>The worst jobs</h2>\n{out}") }
}

fn explained(observed: &Observed, account: &Account) -> String {
    let header = &observed.header;
    let name = escape(&job_name(header, account.job));
    let lateness = account.lateness();
    let fate = match lateness.0 > 0 {
        _ if header.has_made_up_deadlines(account.job.task) => "no deadline".to_owned(),
        true => format!("<span class=\"bad\">{} late</span>", signed(lateness)),
        false => format!("{} before its deadline", signed(SignedNanos(-lateness.0))),
    };
    let took = short(account.time());
    let mut out = format!("<h3>{name}, {}: {took}, {fate}</h3>\n", escape(&observed.label));
    let unit = TimeUnit::for_longest(account.time());
    let whole = u128::from(account.time().0);
    let rows: Vec<Vec<String>> = account
        .parts()
        .iter()
        .map(|part| {
            vec![
                part.blame.what(header.origin).to_owned(),
                escape(&part.blame.which(header)),
                unit.show(part.time),
                percent(u128::from(part.time.0), whole),
                part.pieces.to_string(),
            ]
        })
        .collect();
    let end = if account.completed { "response time" } else { "so far" };
    let total = vec![end.to_owned(), String::new(), unit.show(account.time()), "100.00".to_owned(), String::new()];
    let time = format!("time, {}", unit.name);
    out.push_str(&table(&["it", "", &time, "share, %", "pieces"], &rows, &[total], 2));
    out.push_str(&picture(observed, account));
    out
}

/// The schedule from a little before the job's arrival to a little after its end.
fn picture(observed: &Observed, account: &Account) -> String {
    let from = account.arrival.min(account.release);
    let margin = Nanos((account.to.saturating_since(from).0 / 12).max(1));
    let end = observed.records.last().map_or(account.to, |record| record.at);
    let window = Window {
        from: Instant(from.0.saturating_sub(margin.0)),
        to: Some(account.to.max(account.deadline.min(end)).saturating_add(margin).min(end)),
    };
    let options = SvgOptions { window, width: 1_150, caption: false, ..SvgOptions::default() };
    match gantt::svg(&observed.header, &observed.records, &options) {
        Ok(svg) => format!(
            "<figure><img alt=\"Gantt chart around {}\" src=\"{}\"></figure>\n",
            escape(&job_name(&observed.header, account.job)),
            data_uri(&svg)
        ),
        // A job without a span: there is nothing to draw.
        Err(_) => String::new(),
    }
}

/// How all of it was found, and what is missing.
fn set_up(evidence: &Evidence) -> String {
    let mut out = String::from("<h2>How it was found</h2>\n<dl class=\"facts\">\n");
    let mut fact = |label: &str, value: &str| {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(label), escape(value));
    };
    for observed in &evidence.observed {
        fact(&observed.label, &observed.how);
        let threads = observed.header.tasks.iter().filter(|task| task.kind == TaskKind::BestEffort).count();
        if threads > 0 {
            fact("", &format!("beside {}", counted(threads as u64, "best-effort task")));
        }
    }
    evidence.facts.iter().for_each(|(label, value)| fact(label, value));
    if let Some(proof) = &evidence.proof {
        let costs = laxity_model::OverheadKind::ALL
            .into_iter()
            .filter(|&kind| !proof.overheads.costs.of(kind).is_zero())
            .map(|kind| format!("{} {}", kind.name().replace('_', " "), short(proof.overheads.costs.of(kind))))
            .collect::<Vec<_>>()
            .join(", ");
        fact("charged", if costs.is_empty() { "nothing" } else { &costs });
    }
    evidence.missing.iter().for_each(|missing| fact(&format!("left out: {}", missing.what), &missing.why));
    evidence.damaged.iter().for_each(|error| fact("left out: the end of a trace", &error.to_string()));
    out.push_str("</dl>\n");
    out
}
