//! The chart as text.

use laxity_trace::gantt::{Characters, GanttError, Rows, TextOptions, Window, text};
use proptest::prelude::*;

use super::fixtures::*;
use super::intervals::{any_header, any_records};

fn ascii(rows: Rows, width: usize) -> TextOptions {
    TextOptions { rows, width, characters: Characters::Ascii, window: Window::default() }
}

#[test]
fn a_chart_in_ascii_shows_cpus_tasks_marks_and_legend() {
    let chart = text(&figure_1_header(), &figure_1c(), &ascii(Rows::Both, 82)).expect("it can be drawn");
    assert_eq!(
        chart,
        "\
paper 002, Fig. 1, G-EDF/CEm, simulated (seed 7)
0 ms to 15 ms, 200 us a column

     0 ms                     5                        10                       15
     |                        |                        |                        |
cpu0 .......%%%%CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC%%BBBBBBBBBBBBBBBBBB%%%.......
cpu1 ...................%%%%BBBBBBBBBBBB%%AAAAAAAAAAAAA%%%......................

T1                                   .....#############
                                     ^                                       v
T2                      ....############............##################
                        ^                                                      v
T3          ....##################################
            ^                                                           v

A T1  B T2  C T3  % overhead  = waits for the lock  . idle
# executes  . waits  - suspended  ^ release  v deadline  x both  ! missed deadline
"
    );
}

#[test]
fn misses_are_marked_and_named() {
    let (header, records) = suspension_and_misses();
    let options = TextOptions { rows: Rows::Tasks, width: 60, ..TextOptions::default() };
    let chart = text(&header, &records, &options).expect("it can be drawn");
    assert_eq!(
        chart,
        "\
misses, G-EDF/CEm, simulated (seed 7)
0 ms to 10 ms, 200 us a column

        0 ms      2         4         6         8         10
        │         │         │         │         │         │
control ██████████┄┄┄┄┄┄┄┄┄┄█████░░░░░███████████████
        ↑                   ✗                   ✗
logger  ░░░░░░░░░░██████████░░░░░█████░░░░░░░░░░░░░░░█████
        ↑                                       ✗

█ executes  ░ waits  ┄ suspended  ↑ release  ↓ deadline  ↕ both  ✗ missed deadline
missed deadlines, whole trace: control job 0 by 1 ms, logger job 0 (still pending at 10 ms), control job 1 by 1 ms
"
    );
}

#[test]
fn a_window_is_cut_out() {
    let window = Window::between(at(60), at(100));
    let options = TextOptions { window, ..ascii(Rows::Tasks, 50) };
    let chart = text(&figure_1_header(), &figure_1a(), &options).expect("it can be drawn");
    assert_eq!(
        chart,
        "\
paper 002, Fig. 1, G-EDF/CEm, simulated (seed 7)
6 ms to 10 ms, 100 us a column

   6 ms      7         8         9         10
   |         |         |         |         |
T1      #########################
        ^
T2 #####...............####################
T3 ####################

# executes  . waits  - suspended  ^ release  v deadline  x both  ! missed deadline
"
    );
}

#[test]
fn a_window_without_time_is_refused() {
    let options = TextOptions { window: Window::between(at(60), at(60)), ..TextOptions::default() };
    let error = text(&figure_1_header(), &figure_1a(), &options).expect_err("refused");
    assert_eq!(error, GanttError::EmptyWindow { from: at(60), to: at(60) });
    assert_eq!(error.to_string(), "window from 6 ms to 6 ms shows no time; choose a right edge later than 6 ms");
}

proptest! {
    /// Broken traces and odd windows are drawn or refused, and no line of the chart exceeds its width.
    #[test]
    fn any_trace_is_drawn_within_its_width(
        records in any_records(),
        width in 0usize..150,
        from in prop_oneof![0u64..2_000, Just(u64::MAX - 1)],
        to in proptest::option::of(prop_oneof![0u64..2_000, Just(u64::MAX)]),
    ) {
        let window = Window { from: laxity_model::Instant(from), to: to.map(laxity_model::Instant) };
        let options = TextOptions { window, width, ..TextOptions::default() };
        if let Ok(chart) = text(&any_header(), &records, &options) {
            let rows = chart.lines().filter(|line| line.starts_with("cpu") || line.starts_with(['a', 'b', 'c']));
            for row in rows {
                prop_assert!(row.chars().count() <= width.max(40), "{row}");
            }
        }
    }
}
