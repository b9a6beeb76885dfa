//! Response times as they are distributed, one strip for each way they were found, on a common axis with bound and deadline.
//!
//! ```text
//!   simulated  ▁▂█▃▁      ▁       |bound   :deadline
//!   live        ▁▂█▄▂▁  ▁      ▁  |        :
//!              0            20            40 ms
//! ```

use laxity_model::Nanos;
use laxity_model::text::printable;
use svg::Document;
use svg::node::element::{Line, Rectangle, Text, Title};

use crate::quantity::short;

const WIDTH: f64 = 620.0;
const LEFT: f64 = 140.0;
const RIGHT: f64 = 24.0;
const ROW: f64 = 40.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 22.0;
/// A line of text, and how wide a letter is at most.
const LINE: f64 = 14.0;
const LETTER: f64 = 7.0;
/// Between a line and its name.
const GAP: f64 = 3.0;
/// Columns of a histogram.
const BINS: usize = 120;
/// What takes longer than so many times bound and deadline is in the last column, so that these can be seen.
const END: u64 = 3;

/// The colours of what is beside each other, made for all kinds of colour vision (Okabe and Ito).
pub const COLOURS: [&str; 4] = ["#56b4e9", "#d55e00", "#009e73", "#cc79a7"];

/// What a strip chart shows.
pub struct Strips<'a> {
    /// Each way with its sorted times.
    pub rows: Vec<(&'a str, &'a [Nanos])>,
    pub bound: Option<Nanos>,
    pub deadline: Option<Nanos>,
}

/// Draws the strips.
pub fn draw(strips: &Strips) -> String {
    let end = end(strips).0 as f64 * 1.02;
    let across = |time: f64| LEFT + time / end * (WIDTH - LEFT - RIGHT);
    let marks = marks(strips, across);
    let lines = 1.0 + marks.iter().map(|mark| mark.row).max().unwrap_or(0) as f64;
    let top = TOP + (lines - 1.0) * LINE;
    let height = top + ROW * strips.rows.len() as f64 + BOTTOM;
    let floor = height - BOTTOM;
    let mut picture = Document::new()
        .set("viewBox", format!("0 0 {WIDTH} {height}"))
        .set("width", WIDTH)
        .set("font-family", "system-ui, sans-serif")
        .set("font-size", 12)
        .set("role", "img")
        .add(line((LEFT, floor), (WIDTH - RIGHT, floor), "#5f6368", "none", 1.0));
    for (row, (label, times)) in strips.rows.iter().enumerate() {
        let base = top + ROW * (row as f64 + 1.0);
        picture = picture.add(text(LEFT - 8.0, base - 8.0, "end", label, "#202124"));
        picture = picture.add(line((LEFT, base), (WIDTH - RIGHT, base), "#dadce0", "none", 1.0));
        for (bin, count, most) in histogram(times, end) {
            let tall = (count as f64 / most as f64 * (ROW - 8.0)).max(2.0);
            let wide = (WIDTH - LEFT - RIGHT) / BINS as f64;
            let bar = Rectangle::new()
                .set("x", format!("{:.2}", LEFT + bin as f64 * wide))
                .set("y", format!("{:.2}", base - tall))
                .set("width", format!("{wide:.2}"))
                .set("height", format!("{tall:.2}"))
                .set("fill", COLOURS[row % COLOURS.len()]);
            let said = format!(
                "{count} of {} jobs, about {}",
                times.len(),
                short(Nanos((bin as f64 / BINS as f64 * end) as u64))
            );
            picture = picture.add(bar.add(Title::new(said)));
        }
    }
    for mark in marks {
        let name_y = TOP - 6.0 + mark.row as f64 * LINE;
        picture = picture.add(line((mark.x, name_y + 2.0), (mark.x, floor), mark.colour, mark.dash, 1.5));
        picture = picture.add(text(mark.name_x, name_y, mark.anchor, mark.name, mark.colour));
    }
    picture = picture.add(text(LEFT, height - 6.0, "start", "0", "#5f6368"));
    let last = strips.rows.iter().filter_map(|(_, times)| times.last().copied()).max();
    for (time, name) in [(strips.deadline.or(strips.bound).or(last), "")] {
        if let Some(time) = time {
            picture = picture.add(text(
                across(time.0 as f64),
                height - 6.0,
                "end",
                &format!("{}{name}", short(time)),
                "#5f6368",
            ));
        }
    }
    picture.to_string()
}

/// A line across all strips, and its name.
struct Mark {
    x: f64,
    name: &'static str,
    name_x: f64,
    anchor: &'static str,
    /// Which line of text, the upper one first.
    row: usize,
    colour: &'static str,
    dash: &'static str,
}

impl Mark {
    /// From where to where its name goes.
    fn extent(&self) -> (f64, f64) {
        let wide = self.name.len() as f64 * LETTER;
        if self.anchor == "end" { (self.name_x - wide, self.name_x) } else { (self.name_x, self.name_x + wide) }
    }
}

/// Bound and deadline. Their names stand on the outer sides of their lines, where they do not meet, as far as there is room;
/// names that meet stand in two lines of text.
fn marks(strips: &Strips, across: impl Fn(f64) -> f64) -> Vec<Mark> {
    let bound_is_first = strips.bound.zip(strips.deadline).map(|(bound, deadline)| bound <= deadline);
    let mark = |time: Option<Nanos>, name: &'static str, goes_left: Option<bool>| {
        let x = across(time?.0 as f64);
        let room = name.len() as f64 * LETTER + GAP;
        let goes_left = goes_left.unwrap_or(x > WIDTH / 2.0);
        let is_left = if goes_left { x - room > LEFT } else { x + room > WIDTH };
        let (name_x, anchor) = if is_left { (x - GAP, "end") } else { (x + GAP, "start") };
        let (colour, dash) = if name == "bound" { ("#202124", "none") } else { ("#b3261e", "4 3") };
        Some(Mark { x, name, name_x, anchor, row: 0, colour, dash })
    };
    let bound = mark(strips.bound, "bound", bound_is_first);
    let deadline = mark(strips.deadline, "deadline", bound_is_first.map(|first| !first));
    let mut marks: Vec<Mark> = bound.into_iter().chain(deadline).collect();
    if let [bound, deadline] = &mut marks[..] {
        let (of_bound, of_deadline) = (bound.extent(), deadline.extent());
        let meet = of_bound.0 < of_deadline.1 && of_deadline.0 < of_bound.1;
        let crosses = |x: f64, (from, to): (f64, f64)| from < x && x < to;
        // The line of the upper name goes down beside the lower one.
        if crosses(bound.x, of_deadline) {
            bound.row = 1;
        } else if meet || crosses(deadline.x, of_bound) {
            deadline.row = 1;
        }
    }
    marks
}

/// The longest time that has a column of its own.
fn end(strips: &Strips) -> Nanos {
    let marked = strips.bound.max(strips.deadline);
    let longest = strips.rows.iter().filter_map(|(_, times)| times.last().copied()).chain(marked).max();
    let most = marked.map_or(Nanos::LONGEST, |marked| Nanos(marked.0.saturating_mul(END)));
    longest.unwrap_or(Nanos(1)).min(most).max(Nanos(1))
}

/// The columns that are not empty, with their counts and the highest count.
fn histogram(times: &[Nanos], end: f64) -> Vec<(usize, usize, usize)> {
    let mut bins = [0usize; BINS];
    for time in times {
        let bin = (time.0 as f64 / end * BINS as f64) as usize;
        bins[bin.min(BINS - 1)] += 1;
    }
    let most = bins.iter().copied().max().unwrap_or(1).max(1);
    bins.into_iter().enumerate().filter(|&(_, count)| count > 0).map(|(bin, count)| (bin, count, most)).collect()
}

fn line(from: (f64, f64), to: (f64, f64), colour: &str, dash: &str, width: f64) -> Line {
    Line::new()
        .set("x1", format!("{:.2}", from.0))
        .set("y1", format!("{:.2}", from.1))
        .set("x2", format!("{:.2}", to.0))
        .set("y2", format!("{:.2}", to.1))
        .set("stroke", colour)
        .set("stroke-dasharray", dash)
        .set("stroke-width", width)
}

fn text(x: f64, y: f64, anchor: &str, words: &str, colour: &str) -> Text {
    Text::new(printable(words))
        .set("x", format!("{x:.2}"))
        .set("y", format!("{y:.2}"))
        .set("text-anchor", anchor)
        .set("fill", colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They were printed over each other where the bound is the deadline.
    #[test]
    fn the_names_of_bound_and_deadline_never_meet() {
        let across = |time: f64| LEFT + time / 102.0 * (WIDTH - LEFT - RIGHT);
        for bound in 1..=100 {
            for deadline in 1..=100 {
                let strips = Strips { rows: Vec::new(), bound: Some(Nanos(bound)), deadline: Some(Nanos(deadline)) };
                let marks = marks(&strips, across);
                let [one, other] = &marks[..] else { panic!("two marks") };
                let meet = one.extent().0 < other.extent().1 && other.extent().0 < one.extent().1;
                assert!(!meet || one.row != other.row, "bound {bound}, deadline {deadline}");
                for (upper, lower) in
                    [(one, other), (other, one)].into_iter().filter(|(upper, lower)| upper.row <= lower.row)
                {
                    let (from, to) = lower.extent();
                    assert!(
                        upper.x <= from || to <= upper.x,
                        "bound {bound}, deadline {deadline}: a line through a name"
                    );
                    assert!(from > 0.0 && to < WIDTH, "bound {bound}, deadline {deadline}: a name is cut");
                }
            }
        }
    }

    #[test]
    fn a_job_that_takes_a_thousand_times_as_long_leaves_room_for_bound_and_deadline() {
        let ms = Nanos::from_millis;
        let (quick, slow) = ([ms(1), ms(2)], [ms(1), ms(10_000)]);
        let rows = vec![("quick", &quick[..]), ("slow", &slow[..])];
        let strips = Strips { rows: rows.clone(), bound: Some(ms(5)), deadline: Some(ms(10)) };
        assert_eq!(end(&strips), ms(30));
        let columns: Vec<usize> = histogram(&slow, 30_000_000.0 * 1.02).iter().map(|&(bin, ..)| bin).collect();
        assert_eq!(columns, [3, BINS - 1], "the last column has what is longer");
        assert_eq!(end(&Strips { rows: rows[..1].to_vec(), ..strips }), ms(10), "no longer than is needed");
        assert_eq!(end(&Strips { rows, bound: None, deadline: None }), ms(10_000));
    }
}
