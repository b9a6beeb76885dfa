//! The chart as SVG: its geometry and its limits. Whether it is beautiful, people must look.

use laxity_model::{Instant, Nanos};
use laxity_trace::gantt::{GanttError, Rows, SvgOptions, Window, svg};
use laxity_trace::{Event as TraceEvent, Record, TraceHeader};
use proptest::prelude::*;
use svg::parser::Event;

use super::fixtures::*;
use super::gpus::*;
use super::intervals::{any_header, any_records};

fn options(rows: Rows) -> SvgOptions {
    SvgOptions { rows, ..SvgOptions::default() }
}

fn draw(header: &TraceHeader, records: &[Record], options: &SvgOptions) -> String {
    svg(header, records, options).expect("it can be drawn")
}

/// A text of the picture and the rectangle it takes, estimated.
#[derive(Debug)]
struct Text {
    content: String,
    left: f64,
    right: f64,
    line: f64,
    size: f64,
}

/// All texts of a picture. Panics if it is no well-formed SVG.
fn texts(picture: &str) -> Vec<Text> {
    let mut found: Vec<Text> = Vec::new();
    let mut anchors = Vec::new();
    let mut depth = 0;
    let mut in_text = false;
    for event in svg::read(picture).expect("a document") {
        match event {
            Event::Error(error) => panic!("not well-formed: {error}"),
            Event::Tag("text", svg::node::element::tag::Type::Start, attributes) => {
                let number = |name: &str| attributes[name].parse::<f64>().expect("a number");
                let (x, line, size) = (number("x"), number("y"), number("font-size"));
                anchors.push(attributes["text-anchor"].to_string());
                found.push(Text { content: String::new(), left: x, right: x, line, size });
                (in_text, depth) = (true, depth + 1);
            }
            Event::Tag("text", svg::node::element::tag::Type::End, _) => (in_text, depth) = (false, depth - 1),
            Event::Tag(_, svg::node::element::tag::Type::Start, _) => depth += 1,
            Event::Tag(_, svg::node::element::tag::Type::End, _) => depth -= 1,
            Event::Text(text) if in_text => found.last_mut().expect("a text is open").content.push_str(text),
            _ => {}
        }
    }
    assert_eq!(depth, 0, "every element is closed");
    for (text, anchor) in found.iter_mut().zip(anchors) {
        // Subscripts are smaller; half an em a character is what Helvetica needs for names and numbers.
        let width = text.content.chars().count() as f64 * text.size * 0.5;
        let share = [("start", 0.0), ("middle", 0.5), ("end", 1.0)].iter().find(|(name, _)| *name == anchor);
        text.left -= width * share.expect("a known anchor").1;
        text.right = text.left + width;
    }
    found
}

/// The horizontal extent of the bars whose tooltip starts with `what`.
pub fn bars(picture: &str, what: &str) -> Vec<(f64, f64)> {
    let value = |element: &str, name: &str| -> Option<f64> {
        element.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok()
    };
    let lines: Vec<&str> = picture.lines().collect();
    let mut found = Vec::new();
    for (position, line) in lines.iter().enumerate() {
        if line.trim_start_matches("<title>").starts_with(what) {
            let element = lines[..position].iter().rev().find(|line| line.starts_with("<rect")).expect("a bar");
            let x = value(element, "x").expect("a position");
            found.push((x, x + value(element, "width").expect("a width")));
        }
    }
    found
}

/// Every picture that the other tests of this file look at.
fn pictures() -> Vec<(String, String)> {
    let (misses_header, misses) = suspension_and_misses();
    let (busy_header, busy_records) = busy(50, 8, 1_500);
    let window = Window::between(at(200), at(300));
    // Ticks a few ns apart, a long time after the start, have long labels.
    let far = Window::between(Instant(7_000_000_000_000_000), Instant(7_000_000_000_000_090));
    let mut long = figure_1a();
    long.retain(|record| record.event != TraceEvent::End);
    long.push(Record { at: Instant(7_000_000_000_000_090), event: TraceEvent::End });
    let mut pictures = Vec::new();
    for rows in [Rows::Cpus, Rows::Tasks, Rows::Both] {
        for width in [500, 1_000] {
            let options = SvgOptions { rows, width, ..SvgOptions::default() };
            let windowed = SvgOptions { window, ..options };
            let mut add = |name: &str, picture| pictures.push((format!("{name}, {rows:?}, {width}"), picture));
            add("figure 1(a)", draw(&figure_1_header(), &figure_1a(), &options));
            add("figure 1(c)", draw(&figure_1_header(), &figure_1c(), &options));
            add("misses", draw(&misses_header, &misses, &options));
            add("busy", draw(&busy_header, &busy_records, &options));
            add("busy window", draw(&busy_header, &busy_records, &windowed));
            for (name, (header, records)) in gpu_traces() {
                add(name, draw(&header, &records, &options));
            }
            add("far", draw(&figure_1_header(), &long, &SvgOptions { window: far, ..options }));
        }
    }
    pictures
}

fn gpu_traces() -> [(&'static str, (TraceHeader, Vec<Record>)); 3] {
    [("standard Linux", inversion_slih()), ("klmirqd", inversion_klmirqd()), ("pipeline", pipeline())]
}

#[test]
fn no_two_texts_overlap() {
    for (name, picture) in pictures() {
        let texts = texts(&picture);
        assert!(texts.len() > 5, "{name}: names, labels and legend are there");
        for (position, one) in texts.iter().enumerate() {
            for other in &texts[position + 1..] {
                let apart = one.right <= other.left
                    || other.right <= one.left
                    || (one.line - other.line).abs() >= 0.7 * one.size.max(other.size);
                assert!(apart, "{name}: {one:?} overlaps {other:?}");
            }
        }
    }
}

#[test]
fn every_text_is_inside_the_picture() {
    for (name, picture) in pictures() {
        let size = picture.split("viewBox=\"0 0 ").nth(1).and_then(|rest| rest.split('"').next()).expect("a size");
        let (width, height) = size.split_once(' ').expect("two numbers");
        let (width, height): (f64, f64) = (width.parse().expect("a width"), height.parse().expect("a height"));
        for text in texts(&picture) {
            assert!(text.left >= 0.0 && text.right <= width, "{name}: {text:?} leaves {width}");
            assert!(text.line - text.size >= 0.0 && text.line <= height, "{name}: {text:?} leaves {height}");
        }
    }
}

/// Paper 002, Fig. 1(a): lengths in the picture are to one another as in time.
#[test]
fn bars_are_to_scale() {
    let picture = draw(&figure_1_header(), &figure_1a(), &options(Rows::Cpus));
    let t3 = bars(&picture, "T3 job 0: 1.5 ms to 8 ms (6.5 ms)");
    let t1 = bars(&picture, "T1 job 0: 6.5 ms to 9 ms (2.5 ms)");
    let t2 = bars(&picture, "T2 job 0: 8 ms to 11.4 ms (3.4 ms)");
    let [t3, t1, t2] = [t3, t1, t2].map(|bars| {
        assert_eq!(bars.len(), 1);
        bars[0]
    });
    let per_ms = (t3.1 - t3.0) / 6.5;
    let close = |one: f64, other: f64| (one - other).abs() < 0.05;
    assert!(close(t1.1 - t1.0, 2.5 * per_ms) && close(t2.1 - t2.0, 3.4 * per_ms), "{t3:?} {t1:?} {t2:?}");
    assert!(close(t1.0 - t3.0, 5.0 * per_ms), "T1 starts 5 ms after T3");
    assert!(close(t2.0, t3.1), "T2 goes on where T3 completes");
}

/// The fill of the first bar whose tooltip starts with `what`, and of the shape drawn right before it.
fn fills(picture: &str, what: &str) -> (String, String) {
    let fill = |line: &str| line.split(" fill=\"").nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned);
    let lines: Vec<&str> = picture.lines().collect();
    let title = lines.iter().position(|line| line.trim_start_matches("<title>").starts_with(what)).expect(what);
    let mut shapes = lines[..title].iter().rev().filter_map(|line| fill(line));
    (shapes.next().expect("a bar"), shapes.next().expect("something before it"))
}

/// Paper 000, Fig. 1: both halves have the colour of H, which they run for, though they are on the stack of L.
#[test]
fn halves_of_interrupts_have_a_pattern_over_their_owners_colour() {
    let (header, records) = inversion_slih();
    let picture = draw(&header, &records, &options(Rows::Both));
    let (h, _) = fills(&picture, "H job 0: 0 ms to 7 ms (7 ms)");
    assert_eq!(fills(&picture, "top half for H job 0: 4 ms to 4.3 ms"), ("url(#top-half)".to_owned(), h.clone()));
    let bottom_half = ("url(#bottom-half)".to_owned(), h.clone());
    assert_eq!(fills(&picture, "bottom half for H job 0: 4.3 ms to 5.8 ms"), bottom_half);
    assert!(texts(&picture).iter().any(|text| text.content == "BHH0"));
    // The same in a thread.
    let (header, records) = inversion_klmirqd();
    let picture = draw(&header, &records, &options(Rows::Both));
    assert_eq!(fills(&picture, "klmirqd0 job 0 for H job 0: 6 ms to 7.5 ms (1.5 ms)"), bottom_half);
}

#[test]
fn engines_have_rows_between_those_of_cpus_and_tasks() {
    let (header, records) = pipeline();
    let picture = draw(&header, &records, &options(Rows::Both));
    let line = |name: &str| texts(&picture).iter().find(|text| text.content == name).expect(name).line;
    let rows = ["cpu0", "cpu1", "gpu0 EE", "gpu0 CE0", "gpu0 CE1", "T0 camera"].map(line);
    assert!(rows.is_sorted(), "{rows:?}");
    assert_eq!(bars(&picture, "detector job 0, operation").len(), 2);
    // Rows of tasks alone have no engines.
    let picture = draw(&header, &records, &options(Rows::Tasks));
    assert!(!texts(&picture).iter().any(|text| text.content.starts_with("gpu0 CE1")));
}

/// The vertical extent of the first bar whose tooltip starts with `what`.
fn vertical(picture: &str, what: &str) -> (f64, f64) {
    let lines: Vec<&str> = picture.lines().collect();
    let title = lines.iter().position(|line| line.trim_start_matches("<title>").starts_with(what)).expect(what);
    let bar = lines[..title].iter().rev().find(|line| line.starts_with("<rect")).expect("a bar");
    let value = |name: &str| -> f64 {
        let text = bar.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        text.and_then(|text| text.parse().ok()).expect("a number")
    };
    (value("y"), value("y") + value("height"))
}

#[test]
fn locks_held_at_once_are_in_lanes_below_the_row_and_inheritance_is_above_the_bars() {
    let (header, records) = pipeline();
    let picture = draw(&header, &records, &options(Rows::Tasks));
    let (inherits, section) = ("detector job 0 inherits from lidar", "detector job 0 holds gpu0 EE");
    let (pool, wait) = ("detector job 0 holds gpus[1]", "lidar job 0 waits for gpu0 EE: 4 ms to 11 ms");
    let [inherits, section, pool, wait] = [inherits, section, pool, wait].map(|what| vertical(&picture, what));
    assert!(inherits.1 < section.0, "{inherits:?} {section:?}");
    assert!(section.1 <= pool.0 || pool.1 <= section.0, "{section:?} and {pool:?} are held at once");
    // The wait is in the row of lidar, below all that is of detector.
    assert!(section.1.max(pool.1) < wait.0);
    assert_eq!(vertical(&picture, "detector job 0 holds gpu0 CE0"), section, "one after the other in one lane");
    let rows: Vec<f64> = texts(&picture).iter().filter(|text| text.content.starts_with('T')).map(|t| t.line).collect();
    assert!(rows[2] - rows[1] > rows[1] - rows[0] + 15.0, "lanes take room");
}

/// A tick of 1 us every ms is far below a pixel: the job's bar stays one, and says how long the job executed.
#[test]
fn an_interruption_below_a_pixel_does_not_split_a_bar() {
    let header = header("ticks", 1, &[("t", 500, 1_000)]);
    let t = job(0, 0);
    let mut records = vec![release(0, t, 1_000), dispatch(0, 0, t)];
    let tick = |tenths| Record {
        at: at(tenths),
        event: laxity_trace::Event::Overhead {
            cpu: laxity_model::CpuId(0),
            kind: laxity_model::OverheadKind::Tick,
            duration: Nanos(1_000),
        },
    };
    records.extend((1..50).map(|ms| tick(10 * ms)));
    records.extend([complete(500, 0, t), end(1_000)]);
    let picture = draw(&header, &records, &options(Rows::Cpus));
    assert_eq!(bars(&picture, "t job 0: 0 ms to 50 ms (49.951 ms)").len(), 1);
    assert_eq!(bars(&picture, "t job 0").len(), 1);
    // Looked at closely, it is split.
    let window = Window::between(at(5), at(25));
    let picture = draw(&header, &records, &SvgOptions { window, width: 20_000, ..options(Rows::Cpus) });
    assert_eq!(bars(&picture, "t job 0").len(), 3);
}

#[test]
fn the_legend_explains_what_is_used_and_nothing_else() {
    let contents = |picture: &str| texts(picture).into_iter().map(|text| text.content).collect::<Vec<_>>();
    let ideal = contents(&draw(&figure_1_header(), &figure_1a(), &options(Rows::Both)));
    for sign in ["release", "deadline", "completion", "preempted", "migration", "pending"] {
        assert!(ideal.iter().any(|text| text == sign), "{sign} in {ideal:?}");
    }
    for sign in ["missed deadline", "tardy", "suspended", "IPI", "scheduling", "context switch", "lock wait"] {
        assert!(!ideal.iter().any(|text| text == sign), "{sign} in {ideal:?}");
    }
    let real = contents(&draw(&figure_1_header(), &figure_1c(), &options(Rows::Both)));
    for sign in ["IPI", "release overhead", "scheduling", "context switch"] {
        assert!(real.iter().any(|text| text == sign), "{sign} in {real:?}");
    }
    let signs = ["interrupt", "top half (colour: owner)", "bottom half (colour: owner)", "spins", "waits for a lock"];
    let signs = signs.into_iter().chain(["inherits a priority (colour: whose)", "holds gpus", "holds gpu0 CE0"]);
    let (header, records) = pipeline();
    let locks = contents(&draw(&header, &records, &options(Rows::Both)));
    for sign in signs {
        assert!(locks.iter().any(|text| text == sign), "{sign} in {locks:?}");
        assert!(!real.iter().any(|text| text == sign), "{sign} in {real:?}");
    }
    let (header, records) = suspension_and_misses();
    let missed = contents(&draw(&header, &records, &options(Rows::Both)));
    for sign in ["missed deadline", "tardy", "suspended"] {
        assert!(missed.iter().any(|text| text == sign), "{sign} in {missed:?}");
    }
}

#[test]
fn the_caption_says_simulated_and_the_seed() {
    let picture = draw(&figure_1_header(), &figure_1a(), &SvgOptions::default());
    assert!(picture.contains("<title>paper 002, Fig. 1, G-EDF/CEm, simulated (seed 7): 0 ms to 15 ms</title>"));
    assert!(texts(&picture).iter().any(|text| text.content == "G-EDF/CEm · simulated, seed 7"));
    let (header, records) = inversion_klmirqd();
    let picture = draw(&header, &records, &SvgOptions::default());
    let details = "G-EDF/CEm · simulated, seed 7 · GPUs: driver, interrupts: klmirqd";
    assert!(texts(&picture).iter().any(|text| text.content == details));
    let bare = SvgOptions { caption: false, legend: false, ..SvgOptions::default() };
    let picture = draw(&figure_1_header(), &figure_1a(), &bare);
    assert!(!texts(&picture).iter().any(|text| text.content.contains("seed") || text.content == "deadline"));
}

#[test]
fn a_long_trace_stays_small() {
    let (header, records) = busy(20, 4, 60_000);
    for rows in [Rows::Cpus, Rows::Both] {
        let picture = draw(&header, &records, &options(rows));
        let shapes = picture.lines().filter(|line| line.starts_with("<rect") || line.starts_with("<path")).count();
        // At most a shape per pixel of every row.
        assert!(shapes <= 24 * 1_000, "{shapes} shapes for {} records", records.len());
        assert!(picture.len() < records.len() * 40, "{} bytes for {} records", picture.len(), records.len());
    }
}

#[test]
fn names_cannot_break_the_document() {
    let mut header = figure_1_header();
    header.workload = "a<b & \"c\"\u{1}\u{0}".to_owned();
    header.tasks[0].name = "</text><script>".to_owned();
    let picture = draw(&header, &figure_1a(), &options(Rows::Both));
    assert!(!picture.contains("<script>") && !picture.contains('\u{1}'));
    assert!(picture.contains("a&lt;b &amp; "));
    texts(&picture);
}

#[test]
fn a_window_without_time_is_refused() {
    let options = SvgOptions { window: Window::between(at(5), at(4)), ..SvgOptions::default() };
    let error = svg(&figure_1_header(), &figure_1a(), &options).expect_err("refused");
    assert_eq!(error, GanttError::EmptyWindow { from: at(5), to: at(4) });
}

#[test]
fn the_same_trace_is_the_same_picture_byte_for_byte() {
    let (header, records) = busy(50, 8, 300);
    let options = SvgOptions::default();
    assert_eq!(draw(&header, &records, &options), draw(&header, &records, &options));
}

proptest! {
    /// Broken traces and odd windows are drawn as well-formed pictures, or refused.
    #[test]
    fn any_trace_makes_a_well_formed_picture(
        records in any_records(),
        width in any::<u32>(),
        from in prop_oneof![0u64..2_000, Just(u64::MAX - 1)],
        span in prop_oneof![1u64..2_000, Just(u64::MAX)],
        rows in prop_oneof![Just(Rows::Cpus), Just(Rows::Tasks), Just(Rows::Both)],
    ) {
        let window = Window::between(Instant(from), Instant(from).saturating_add(Nanos(span)));
        let options = SvgOptions { rows, window, width: width % 2_000, ..SvgOptions::default() };
        if let Ok(picture) = svg(&any_header(), &records, &options) {
            texts(&picture);
            prop_assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        }
    }
}
