//! The drawing for tests.

use laxity_model::{Nanos, OverheadKind};
use laxity_trace::gantt::{GanttError, Rows, drawing};

use super::fixtures::*;

/// Paper 002, Fig. 1(a), from 0 to 15 ms in half milliseconds. T2 is released at 3.9 and T2 completes at 11.4, inside
/// a column.
#[test]
fn figure_1a_is_drawn_as_in_the_paper() {
    let drawn = drawing(&figure_1_header(), &figure_1a(), span(5), Rows::Both).expect("it can be drawn");
    assert_eq!(
        drawn,
        "\
p0 . . . 2 2 2 2 2 2 2 2 2 2 2 2 2 1 1 1 1 1 1 ~ . . . . . . .
p1 . . . . . . . ~ 1 1 1 1 1 0 0 0 0 0 . . . . . . . . . . . .
t0                           # # # # #
t1               ~ # # # # # . . . # # # # # # ~
t2       # # # # # # # # # # # # #
"
    );
}

#[test]
fn overheads_and_suspensions_have_their_own_signs() {
    let (header, records) = suspension_and_misses();
    let drawn = drawing(&header, &records, span(10), Rows::Tasks).expect("it can be drawn");
    assert_eq!(
        drawn,
        "\
t0 # # - - # . # # #
t1 . . # # . # . . . #
"
    );
    let header = super::fixtures::header("signs", 1, &[("t", 20, 60)]);
    let t = job(0, 0);
    let records = [
        release(0, t, 60),
        overhead(0, 0, OverheadKind::Release, 10),
        record(10, laxity_trace::Event::LockWait { cpu: laxity_model::CpuId(0), duration: span(10) }),
        dispatch(20, 0, t),
        complete(40, 0, t),
        end(50),
    ];
    assert_eq!(drawing(&header, &records, span(10), Rows::Both).expect("drawn"), "p0 ! = 0 0 .\nt0 . . # #\n");
}

/// A tardy job and its successor wait together for another task's job.
#[test]
fn time_in_which_two_jobs_of_a_task_wait_is_drawn_once() {
    let header = header("overload", 1, &[("slow", 50, 50), ("late", 10, 20)]);
    let (slow, first, second) = (job(0, 0), job(1, 0), job(1, 1));
    let records = [
        release(0, slow, 50),
        release(0, first, 20),
        dispatch(0, 0, slow),
        release(20, second, 40),
        complete(50, 0, slow),
        dispatch(50, 0, first),
        complete(60, 0, first),
        dispatch(60, 0, second),
        complete(70, 0, second),
        end(80),
    ];
    let drawn = drawing(&header, &records, span(10), Rows::Tasks).expect("it can be drawn");
    assert_eq!(drawn, "t0 # # # # #\nt1 . . . . . # #\n");
}

#[test]
fn a_drawing_nobody_could_read_is_refused() {
    for step in [Nanos::ZERO, Nanos(1)] {
        let error = drawing(&figure_1_header(), &figure_1a(), step, Rows::Both).expect_err("refused");
        assert_eq!(error, GanttError::TooManyColumns { span: span(150), step, limit: 1_000 });
    }
    assert_eq!(
        GanttError::TooManyColumns { span: span(150), step: Nanos(1), limit: 1_000 }.to_string(),
        "15 ms at 1 ns per column would need more than 1000 columns; choose a longer step or a shorter window"
    );
}

#[test]
fn a_trace_without_time_is_an_empty_drawing() {
    assert_eq!(drawing(&figure_1_header(), &[], span(1), Rows::Cpus).expect("drawn"), "p0\np1\n");
}
