//! Where the laxity went: what the mean job and the latest one were spent with, up to the deadline.

use std::collections::BTreeMap;

use laxity_model::Nanos;
use laxity_model::text::printable;
use laxity_trace::why::Blame;
use laxity_trace::{Outsider, OutsiderKind};
use svg::Document;
use svg::node::element::{Line, Rectangle, Text, Title};

use crate::commands::report::observed::TaskTimes;
use crate::quantity::short;
use crate::table::cut;

const WIDTH: f64 = 900.0;
/// The least and the most space for names.
const LEFT: [f64; 2] = [240.0, 420.0];
/// A letter of a text is at most so wide on average, whatever the font.
const LETTER: f64 = 7.5;
/// Between a bar or line and a text.
const GAP: f64 = 4.0;
/// Longer names are cut: with `, latest job` they fit in the most space.
const NAME_WIDTH_MAX: usize = 42;
const BAR: f64 = 14.0;

/// A kind of spending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Execution,
    Predecessor,
    OtherJobs,
    Locks,
    OwnGpu,
    Gpu,
    Overhead,
    Suspended,
    Tokens,
    NoJob,
}

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Execution,
        Kind::OwnGpu,
        Kind::Suspended,
        Kind::Predecessor,
        Kind::OtherJobs,
        Kind::Locks,
        Kind::Gpu,
        Kind::Overhead,
        Kind::Tokens,
        Kind::NoJob,
    ];

    pub const fn of(blame: Blame) -> Kind {
        match blame {
            Blame::Execution | Blame::CacheRefill(_) => Kind::Execution,
            Blame::Predecessor => Kind::Predecessor,
            Blame::Task(..) => Kind::OtherJobs,
            Blame::Lock(..) => Kind::Locks,
            Blame::Operation(..) => Kind::OwnGpu,
            Blame::Engine(..) => Kind::Gpu,
            Blame::Suspension | Blame::Throttled | Blame::Jitter => Kind::Suspended,
            Blame::WakeUp(_) | Blame::BottomHalf(_) | Blame::Overhead(_) | Blame::SchedulerLock | Blame::Release => {
                Kind::Overhead
            }
            Blame::Tokens(_) => Kind::Tokens,
            Blame::Outside(Outsider { kind: OutsiderKind::Interrupt | OutsiderKind::SoftInterrupt, .. }) => {
                Kind::Overhead
            }
            Blame::Unoccupied | Blame::Stolen | Blame::Outside(_) => Kind::NoJob,
        }
    }

    pub const fn colour(self) -> &'static str {
        match self {
            Kind::Execution => "#0072b2",
            Kind::OwnGpu => "#009e73",
            Kind::Suspended => "#b8c4ce",
            Kind::Predecessor => "#56b4e9",
            Kind::OtherJobs => "#e69f00",
            Kind::Locks => "#d55e00",
            Kind::Gpu => "#8fd3b6",
            Kind::Overhead => "#5f6368",
            Kind::Tokens => "#cc79a7",
            Kind::NoJob => "#f0d442",
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            Kind::Execution => "executes",
            Kind::OwnGpu => "own GPU operations",
            Kind::Suspended => "suspended, throttled, jitter",
            Kind::Predecessor => "waits for its predecessor",
            Kind::OtherJobs => "other jobs have the CPU",
            Kind::Locks => "waits for locks and tokens of GPUs",
            Kind::Gpu => "operation waits for an engine",
            Kind::Overhead => "scheduler, interrupts, wake-up",
            Kind::Tokens => "waits for tokens of its graph",
            Kind::NoJob => "no job has the CPU: scheduler, other threads, hypervisor",
        }
    }
}

/// A bar: its label, what was spent, and the deadline.
pub struct Bar {
    pub label: String,
    pub spent: BTreeMap<Kind, u64>,
    pub deadline: Nanos,
}

/// The mean job and the latest job of a task.
pub fn bars(name: &str, task: &TaskTimes, deadline: Nanos) -> Vec<Bar> {
    let label = cut(name, NAME_WIDTH_MAX);
    let mut bars = Vec::new();
    if !task.times.is_empty() {
        bars.push(Bar { label: format!("{label}, mean job"), spent: sum(task.mean()), deadline });
    }
    if let Some(latest) = &task.latest {
        let parts = latest.parts();
        let spent = sum(parts.iter().map(|part| (part.blame, part.time.0)));
        bars.push(Bar { label: format!("{label}, latest job"), spent, deadline });
    }
    bars
}

fn sum(parts: impl Iterator<Item = (Blame, u64)>) -> BTreeMap<Kind, u64> {
    let mut spent = BTreeMap::new();
    for (blame, time) in parts {
        *spent.entry(Kind::of(blame)).or_default() += time;
    }
    spent
}

/// Draws bars whose deadlines all stand at one line: each is relative to its own.
pub fn draw(bars: &[Bar]) -> String {
    let share = |bar: &Bar| bar.spent.values().sum::<u64>() as f64 / bar.deadline.0.max(1) as f64;
    // What takes very long is cut, so that the others remain readable.
    let end = bars.iter().map(share).fold(1.0, f64::max).min(2.5);
    let times: Vec<String> = bars
        .iter()
        .map(|bar| format!("{}{}", if share(bar) > end { "… " } else { "" }, short(Nanos(bar.spent.values().sum()))))
        .collect();
    let wide = |words: &str| words.chars().count() as f64 * LETTER;
    let left = bars.iter().map(|bar| wide(&bar.label) + 2.0 * GAP).fold(LEFT[0], f64::max).min(LEFT[1]);
    let right = GAP + times.iter().map(|words| wide(words)).fold(0.0, f64::max);
    let across = |share: f64| left + share.min(end) / end * (WIDTH - left - right);
    let deadline = across(1.0);
    let height = 20.0 + bars.len() as f64 * (BAR + 6.0) + 6.0;
    let mut picture = Document::new()
        .set("viewBox", format!("0 0 {WIDTH} {height}"))
        .set("width", WIDTH)
        .set("font-family", "system-ui, sans-serif")
        .set("font-size", 12)
        .set("role", "img");
    for (number, (bar, words)) in bars.iter().zip(&times).enumerate() {
        let y = 20.0 + number as f64 * (BAR + 6.0);
        picture = picture.add(text(left - 2.0 * GAP, y + 11.5, "end", &bar.label));
        let mut spent = 0;
        for kind in Kind::ALL {
            let Some(&time) = bar.spent.get(&kind).filter(|&&time| time > 0) else { continue };
            let scale = |time: u64| across(time as f64 / bar.deadline.0.max(1) as f64);
            let (from, to) = (scale(spent), scale(spent + time));
            spent += time;
            let piece = Rectangle::new()
                .set("x", format!("{from:.2}"))
                .set("y", format!("{y:.2}"))
                .set("width", format!("{:.2}", to - from))
                .set("height", BAR)
                .set("fill", kind.colour());
            picture = picture.add(piece.add(Title::new(format!("{}: {}", kind.words(), short(Nanos(time))))));
        }
        let late = spent > bar.deadline.0;
        let colour = if late { "#b3261e" } else { "#5f6368" };
        let bar_end = across(share(bar));
        // Beside its bar; behind the line if it would run across it.
        let is_across = bar_end < deadline && bar_end + GAP + wide(words) > deadline;
        let from = if is_across { deadline } else { bar_end };
        picture = picture.add(text(from + GAP, y + 11.5, "start", words).set("fill", colour));
    }
    picture
        .add(
            Line::new()
                .set("x1", deadline)
                .set("x2", deadline)
                .set("y1", 14.0)
                .set("y2", height)
                .set("stroke", "#b3261e")
                .set("stroke-dasharray", "4 3"),
        )
        .add(text(deadline, 11.0, "middle", "deadline").set("fill", "#b3261e"))
        .to_string()
}

fn text(x: f64, y: f64, anchor: &str, words: &str) -> Text {
    Text::new(printable(words)).set("x", format!("{x:.2}")).set("y", format!("{y:.2}")).set("text-anchor", anchor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, spent: &[(Kind, u64)], deadline: u64) -> Bar {
        let micros = |&(kind, time): &(Kind, u64)| (kind, time * 1_000);
        Bar { label: label.to_owned(), spent: spent.iter().map(micros).collect(), deadline: Nanos(deadline * 1_000) }
    }

    /// Where the text begins that is the time of a bar.
    fn begin(picture: &str, words: &str) -> f64 {
        let until = picture.find(&format!("\n{words}\n")).unwrap_or_else(|| panic!("{words} in {picture}"));
        let x = picture[..until].rsplit(" x=\"").next().and_then(|rest| rest.split('"').next());
        x.and_then(|x| x.parse().ok()).expect("a text has a place")
    }

    /// Even in letters that are wider than those of most fonts.
    #[test]
    fn the_time_of_a_bar_is_within_the_picture_and_does_not_cross_the_deadline() {
        let bars = [
            bar("cut", &[(Kind::Execution, 123_456)], 1_234),
            bar("close", &[(Kind::Execution, 1_111)], 1_234),
            bar("short", &[(Kind::Execution, 11)], 1_234),
        ];
        let picture = draw(&bars);
        let deadline = begin(&picture, "deadline");
        for words in ["… 123.456 ms", "1.111 ms", "11 us"] {
            let from = begin(&picture, words);
            let to = from + words.chars().count() as f64 * LETTER;
            assert!(to <= WIDTH, "{words} ends at {to}");
            assert!(from > deadline || to <= deadline, "{words}: {from} to {to}, across {deadline}");
        }
    }

    /// A job that waits for the one before it is not kept from a CPU by other jobs.
    #[test]
    fn kinds_have_colours_and_words_of_their_own() {
        assert_eq!(Kind::of(Blame::Predecessor), Kind::Predecessor);
        for (index, kind) in Kind::ALL.iter().enumerate() {
            for other in &Kind::ALL[index + 1..] {
                assert_ne!(kind.colour(), other.colour(), "{kind:?} and {other:?}");
                assert_ne!(kind.words(), other.words());
            }
        }
    }
}
