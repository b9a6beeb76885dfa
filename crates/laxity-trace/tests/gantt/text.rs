//! The chart as text.

use laxity_trace::gantt::{Characters, GanttError, Rows, TextOptions, Window, text};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::fixtures::*;
use super::gpus::*;
use super::intervals::{any_header, any_records};

fn ascii(rows: Rows, width: usize) -> TextOptions {
    TextOptions { rows, width, characters: Characters::Ascii, window: Window::default() }
}

/// Wide letters, accents of their own, and letters that a terminal would obey: the chart begins in the same column.
#[test]
fn rows_begin_in_one_column_whatever_their_names_are() {
    let drawn = |names: [&str; 3]| {
        let mut header = figure_1_header();
        for (task, name) in header.tasks.iter_mut().zip(names) {
            task.name = name.to_owned();
        }
        text(&header, &figure_1c(), &ascii(Rows::Both, 82)).expect("it can be drawn")
    };
    let columns = |chart: &str, mark: &str| -> Vec<usize> {
        chart.lines().filter_map(|line| line.rfind(mark).map(|at| line[..at].width())).collect()
    };
    let chart = drawn(["\u{30ab}\u{30e1}\u{30e9}", "e\u{301}", "\u{202e}evil"]);
    let plain = drawn(["first", "second", "as-wide-as"]);
    for mark in ["##", "^", "%%", "|"] {
        assert_eq!(columns(&chart, mark), columns(&plain, mark), "{mark}\n{chart}\n{plain}");
    }
    assert!(chart.contains("\\u202eevil"), "{chart}");
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

/// Paper 000, Fig. 1: L is delayed by the bottom half for H, which runs on the other CPU.
#[test]
fn a_bottom_half_beside_its_owner_shows_as_priority_inversion() {
    let (header, records) = inversion_slih();
    let chart = text(&header, &records, &ascii(Rows::Both, 85)).expect("it can be drawn");
    assert_eq!(
        chart,
        r#"inversion under standard Linux, G-EDF/CEm, GPUs: driver, interrupts: linux, simulated (seed 7)
0 ms to 15 ms, 200 us a column

         0 ms                     5                        10                       15
         |                        |                        |                        |
cpu0     ..BBBBBBBBBBBBBBBBBB"________BBBBBBBBBBBBBBBBBBBBBBBBBBBB..................
                             i
cpu1     AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA........................................
gpu0 EE  ........AAAAAAAAAAAA.......................................................
gpu0 CE0 .....AAA...................................................................

H        ###################################
         ^                                                           v
L          ##################.........############################
           ^

A H  B L  % overhead  = waits for the lock  . idle
# executes  . waits  - suspended  ^ release  v deadline  x both  ! missed deadline
" top half  _ bottom half  i interrupt
"#
    );
}

/// The same under klmirqd: L goes on after the top half, and the thread waits for H to suspend.
#[test]
fn an_interrupt_thread_waits_for_its_owner_and_has_its_priority() {
    let (header, records) = inversion_klmirqd();
    let options = TextOptions { width: 85, ..TextOptions::default() };
    let chart = text(&header, &records, &options).expect("it can be drawn");
    assert_eq!(
        chart,
        "\
inversion avoided by klmirqd, G-EDF/CEm, GPUs: driver, interrupts: klmirqd, simulated (seed 7)
0 ms to 15 ms, 200 us a column

         0 ms                     5                        10                       15
         │                        │                        │                        │
cpu0     ··BBBBBBBBBBBBBBBBBB▀▀BBBBBBBBBBBBBBBBBBBBBBBBBBBB·························
                             ↯
cpu1     AAAAAAAAAAAAAAAAAAAAAAAAAAAAAACCCCCCCAAAAAA································
gpu0 EE  ········AAAAAAAAAAAA·······················································
gpu0 CE0 ·····AAA···································································

H        ██████████████████████████████┄┄┄┄┄┄┄██████
         ↑                                                           ↓
L          ██████████████████░░████████████████████████████
           ↑
klmirqd0                       ░░░░░░░░████████
                               ↑
                               ▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲

A H  B L  C klmirqd0  ▒ overhead  ≡ waits for the lock  · idle
█ executes  ░ waits  ┄ suspended  ↑ release  ↓ deadline  ↕ both  ✗ missed deadline
▀ top half  ↯ interrupt  ▲ inherits a priority
"
    );
}

#[test]
fn locks_spinning_and_inheritance_have_signs_below_the_rows() {
    let (header, records) = pipeline();
    let options = TextOptions { width: 100, ..TextOptions::default() };
    let chart = text(&header, &records, &options).expect("it can be drawn");
    assert_eq!(
        chart,
        "\
locks and tokens, G-EDF/CEm, GPUs: driver, interrupts: linux, simulated (seed 7)
0 ms to 17 ms, 200 us a column

         0 ms                     5                        10                       15
         │                        │                        │                        │
cpu0     AAABB◌◌◌◌◌BBBBB·························▀▄▄▄▄BBBBBBBBBBBBBBBBBBBBAAABBBBBBBBBBBBBBBBB
                                                 ↯
cpu1     ·················CCC···································C◌◌◌◌◌◌◌◌CCCCCC·▀▄▄▄▄▄▄·······
                                                                                ↯
gpu0 EE  ···············BBBBBBBBBBBBBBBBBBBBBBBBB················CCCCCCCC·····················
gpu0 CE0 ·····BBBBB···········································································
gpu0 CE1 ·····················································································

camera   ███                                                              ███
         ↑                                                                ↕
detector   ███◌◌◌◌◌█████┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄████████████████████  ██████████████████
           ↑                                                                ↑
              ━━━━━━━━━━━━━━━▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲
lidar                     ███◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇◇█◌◌◌◌◌◌◌◌██████
                          ↑
                                                                ━━━━━━━━━━

A camera  B detector  C lidar  ▒ overhead  ≡ waits for the lock  · idle
█ executes  ░ waits  ┄ suspended  ↑ release  ↓ deadline  ↕ both  ✗ missed deadline
▀ top half  ▄ bottom half  ↯ interrupt  ◌ spins  ◇ waits for a lock  ━ holds a lock  ▲ inherits a priority
"
    );
}

/// A section far below a column, and an interrupt without length.
#[test]
fn what_stands_below_rows_shows_however_short_it_is() {
    let (header, _) = pipeline();
    let t = job(0, 0);
    let mut records = vec![grant(50, t, 1, 0), unlock(51, t, 1, 0), interrupt(70, 1, None)];
    records.extend([grant(99, t, 1, 0), end(100)]);
    let window = Window::between(at(0), at(100));
    let options = TextOptions { rows: Rows::Both, window, ..ascii(Rows::Both, 40) };
    let chart = text(&header, &records, &options).expect("it can be drawn");
    let below = |name: &str| {
        let mut lines = chart.lines().skip_while(|line| !line.starts_with(name));
        lines.nth(1).expect("a line of marks").to_owned()
    };
    assert_eq!(below("cpu1"), "                       i");
    assert_eq!(below("camera"), "                   ~        ~");
}

#[test]
fn a_window_without_time_is_refused() {
    let options = TextOptions { window: Window::between(at(60), at(60)), ..TextOptions::default() };
    let error = text(&figure_1_header(), &figure_1a(), &options).expect_err("refused");
    assert_eq!(error, GanttError::EmptyWindow { from: at(60), to: at(60) });
    assert_eq!(error.to_string(), "window from 6 ms to 6 ms shows no time; choose a right edge later than 6 ms");
}

/// The time after the end was drawn as if every CPU had been idle.
#[test]
fn a_chart_shows_no_time_after_the_end_of_the_trace() {
    let beyond = |from, to| {
        let options = TextOptions { window: Window { from, to }, ..ascii(Rows::Tasks, 50) };
        text(&figure_1_header(), &figure_1a(), &options)
    };
    let chart = beyond(at(100), Some(at(400))).expect("it can be drawn");
    let to_the_end = beyond(at(100), None).expect("it can be drawn");
    assert_eq!(chart.replace(", where the trace ends", ""), to_the_end);
    assert_ne!(chart, to_the_end, "a right edge that is moved is told");
    for to in [None, Some(at(400))] {
        let error = beyond(at(200), to).expect_err("nothing of it was recorded");
        assert_eq!(error, GanttError::NotRecorded { from: at(200), end: at(150) });
    }
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
            let names = ["cpu", "a ", "b ", "c ", "g ", "h "];
            let rows = chart.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
            for row in rows {
                prop_assert!(row.chars().count() <= width.max(40), "{row}");
            }
        }
    }
}
