//! The drawing for tests.

use laxity_model::{Nanos, OverheadKind};
use laxity_trace::gantt::{GanttError, Rows, drawing};

use super::fixtures::*;
use super::gpus::*;

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

/// Paper 000, Fig. 1, without the CPU that only H uses: `"` is the top half, `_` the bottom half.
#[test]
fn halves_of_interrupts_and_operations_are_drawn_where_they_run() {
    let (mut header, _) = inversion_slih();
    header.cpus = 1;
    let l = job(1, 0);
    let mut records = vec![release(0, l, 150), dispatch(0, 0, l), interrupt(20, 0, Some(job(0, 0)))];
    records.extend([overhead(20, 0, OverheadKind::TopHalf, 10), complete(60, 0, l), end(70)]);
    records.extend(bottom_half(30, 50, 0, Some(job(0, 0))));
    records.extend(operation(0, 20, EE, job(0, 0)));
    let drawn = drawing(&header, &by_time(records), span(10), Rows::Both).expect("it can be drawn");
    assert_eq!(
        drawn,
        "\
p0 1 1 \" _ _ 1 .
e0 0 0 . . . . .
c0 . . . . . . .
t0
t1 # # . . . #
"
    );
}

#[test]
fn waiting_for_a_lock_and_spinning_have_signs_in_the_rows_of_tasks() {
    let (mut header, _) = pipeline();
    header.gpus.clear();
    header.tasks.truncate(2);
    let [t, u] = [0, 1].map(|task| job(task, 0));
    let mut records = vec![
        release(0, t, 130),
        release(0, u, 180),
        dispatch(0, 0, t),
        dispatch(0, 1, u),
        request(10, t, 0),
        suspend(10, 0, t),
        request(10, u, 1),
        grant(30, t, 0, 0),
        grant(30, u, 1, 0),
        resume(40, 0, t),
        dispatch(50, 0, t),
        complete(60, 0, t),
        complete(60, 1, u),
        end(60),
    ];
    records.extend(spin(10, 30, 1, u));
    let drawn = drawing(&header, &by_time(records), span(10), Rows::Both).expect("it can be drawn");
    assert_eq!(
        drawn,
        "\
p0 0 . . . . 0
p1 1 @ @ 1 1 1
t0 # ? ? - . #
t1 # @ @ # # #
"
    );
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
fn a_drawing_too_wide_to_read_is_refused() {
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
