//! CPUs that carried out no thread for a while, whatever the records around it say.

use laxity_model::{CpuId, Instant};
use laxity_trace::gantt::{Characters, Rows, SvgOptions, TextOptions, Window, drawing, svg, text};
use laxity_trace::intervals::{Activity, Timeline};
use laxity_trace::{Event, Record, TraceHeader};

use super::fixtures::*;
use super::svg::bars;

/// `a` has cpu0 from 0 to 6 ms, and for 2 ms of that the machine has the CPU; `b` has cpu1 until 3 ms, which is stolen later.
pub fn stolen() -> (TraceHeader, Vec<Record>) {
    let header = header("gap", 2, &[("a", 40, 50), ("b", 30, 80)]);
    let (a, b) = (job(0, 0), job(1, 0));
    let stolen = |tenths, cpu, duration| record(tenths, Event::Stolen { cpu: CpuId(cpu), duration: span(duration) });
    let records = vec![
        release(0, a, 50),
        release(0, b, 80),
        dispatch(0, 0, a),
        dispatch(0, 1, b),
        complete(30, 1, b),
        stolen(40, 0, 20),
        stolen(60, 1, 10),
        complete(60, 0, a),
        end(60),
    ];
    (header, records)
}

fn spans(header: &TraceHeader, records: &[Record], cpu: u16) -> Vec<(Instant, Instant)> {
    let timeline = Timeline::of(header, records).expect("the records fit the header");
    let of = Activity::Stolen { cpu: CpuId(cpu) };
    timeline.intervals.iter().filter(|found| found.activity == of).map(|found| (found.from, found.to)).collect()
}

#[test]
fn stolen_time_is_an_interval_that_ends_with_its_record_and_overlaps_no_other() {
    let (header, mut records) = stolen();
    assert_eq!(spans(&header, &records, 0), [(at(20), at(40))]);
    assert_eq!(spans(&header, &records, 1), [(at(50), at(60))]);
    // One that reaches further back than the last, and one that reaches back beyond the start.
    records.insert(6, record(45, Event::Stolen { cpu: CpuId(0), duration: span(30) }));
    records.insert(7, record(50, Event::Stolen { cpu: CpuId(1), duration: span(500) }));
    assert_eq!(spans(&header, &records, 0), [(at(20), at(40)), (at(40), at(45))]);
    assert_eq!(spans(&header, &records, 1), [(at(0), at(50)), (at(50), at(60))]);
}

#[test]
fn a_job_whose_cpu_is_stolen_does_not_execute_in_the_drawing() {
    let (header, records) = stolen();
    let expected = "\
p0 0 0 / / 0 0
p1 1 1 1 . . /
t0 # # / / # #
t1 # # #
";
    assert_eq!(drawing(&header, &records, span(10), Rows::Both).expect("it can be drawn"), expected);
}

#[test]
fn the_text_shows_the_gap_and_explains_it() {
    let (header, records) = stolen();
    let options = TextOptions { characters: Characters::Ascii, width: 40, ..TextOptions::default() };
    let chart = text(&header, &records, &options).expect("it can be drawn");
    assert!(chart.contains("cpu0 AAAAAAAAAA//////////AAAAAAAAAA\n"), "{chart}");
    assert!(chart.contains("a    ##########//////////##########\n"), "{chart}");
    assert!(chart.contains("/ CPU stolen"), "{chart}");
    let before = TextOptions { window: Window::between(at(0), at(20)), ..options };
    let chart = text(&header, &records, &before).expect("it can be drawn");
    assert!(!chart.contains("CPU stolen"), "what is not shown is not explained: {chart}");
}

#[test]
fn the_picture_cuts_the_jobs_bar_where_its_cpu_was_stolen() {
    let (header, records) = stolen();
    let options = SvgOptions { rows: Rows::Cpus, ..SvgOptions::default() };
    let picture = svg(&header, &records, &options).expect("it can be drawn");
    let (job, gap) = (bars(&picture, "a job 0"), bars(&picture, "stolen"));
    let [before, after] = job.as_slice() else { panic!("a piece before and one after: {job:?}") };
    let close = |one: f64, other: f64| (one - other).abs() < 0.02;
    assert!(close(before.1, gap[0].0) && close(gap[0].1, after.0), "{before:?} {gap:?} {after:?}");
    assert_eq!(gap.len(), 2, "one on each CPU");
    assert_eq!(picture.matches("url(#stolen)").count(), 3, "two bars, and the legend");
    assert!(picture.contains("CPU stolen from all threads"));
    let both = svg(&header, &records, &SvgOptions::default()).expect("it can be drawn");
    assert_eq!(both.matches("url(#stolen)").count(), 4, "also in the row of the job's task");
}

#[test]
fn stolen_time_below_a_pixel_shows_at_the_foot_of_its_row() {
    let (header, mut records) = stolen();
    *records.last_mut().expect("its end") = end(30_000);
    let options = SvgOptions { rows: Rows::Cpus, ..SvgOptions::default() };
    let picture = svg(&header, &records, &options).expect("it can be drawn");
    assert!(bars(&picture, "stolen").is_empty());
    assert!(picture.contains("fill=\"#8E1B6B\""), "a strip in its colour");
}
