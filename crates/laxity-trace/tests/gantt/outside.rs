//! CPUs that other threads of the machine and interrupts had.

use laxity_model::CpuId;
use laxity_trace::gantt::{Characters, Rows, SvgOptions, TextOptions, drawing, svg, text};
use laxity_trace::{Event, Outsider, OutsiderKind, Record, ShortName, TraceHeader};

use super::fixtures::*;
use super::svg::bars;

/// `a` has cpu0 from 0 to 6 ms, and for 2 ms of that a thread has the CPU and for 1 ms an interrupt; on cpu1 is that thread later.
fn outside() -> (TraceHeader, Vec<Record>) {
    let mut header = header("others", 2, &[("a", 40, 50)]);
    let a = job(0, 0);
    let outside = |tenths, cpu, by| record(tenths, Event::Outside { cpu: CpuId(cpu), by });
    let thread = Outsider { kind: OutsiderKind::Thread, number: 0 };
    let interrupt = Outsider { kind: OutsiderKind::Interrupt, number: 1 };
    for (outsider, name) in [(thread, "cc1"), (interrupt, "virtio0")] {
        header.learn(&Event::OutsiderName { outsider, piece: 0, name: ShortName::pieces(name)[0] });
    }
    let records = vec![
        release(0, a, 50),
        dispatch(0, 0, a),
        outside(10, 0, Some(thread)),
        outside(30, 0, Some(interrupt)),
        outside(40, 0, None),
        outside(50, 1, Some(thread)),
        // It says of cpu0 what is known better, but for the last 1 ms.
        record(50, Event::Stolen { cpu: CpuId(0), duration: span(30) }),
        complete(60, 0, a),
        end(60),
    ];
    (header, records)
}

#[test]
fn a_job_does_not_execute_where_another_thread_or_an_interrupt_has_its_cpu() {
    let (header, records) = outside();
    let expected = "\
p0 0 \\ \\ \\ / 0
p1 . . . . . \\
t0 # . . . / #
";
    assert_eq!(drawing(&header, &records, span(10), Rows::Both).expect("it can be drawn"), expected);
}

#[test]
fn the_text_shows_and_explains_it() {
    let (header, records) = outside();
    let options = TextOptions { characters: Characters::Ascii, width: 40, ..TextOptions::default() };
    let chart = text(&header, &records, &options).expect("it can be drawn");
    assert!(chart.contains("cpu0 AAAAA\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\/////AAAAA\n"), "{chart}");
    assert!(chart.contains("\\ other threads, interrupts"), "{chart}");
}

#[test]
fn the_picture_names_what_had_the_cpu() {
    let (header, records) = outside();
    let options = SvgOptions { rows: Rows::Cpus, ..SvgOptions::default() };
    let picture = svg(&header, &records, &options).expect("it can be drawn");
    let (job, threads) = (bars(&picture, "a job 0"), bars(&picture, "thread cc1"));
    assert_eq!((job.len(), threads.len(), bars(&picture, "interrupt virtio0").len()), (2, 2, 1));
    assert!((job[0].1 - threads[0].0).abs() < 0.02, "{job:?} {threads:?}");
    assert_eq!(picture.matches("url(#outside)").count(), 4, "three bars, and the legend");
    assert!(picture.contains("other threads and interrupts of the machine"));
}
