//! Programs give the same results with the layer as without, whatever the settings, and their traces are legal.

mod support;

use laxity_model::{EngineOrder, Nanos};
use laxity_trace::Event;
use support::{Place, operations, plain, program, said};

#[test]
fn uses_of_opencl_give_the_same_results_under_every_setting() {
    let Some(semantics) = program("semantics", "semantics.c") else { return };
    let alone = said(&mut plain(&semantics));
    assert!(alone.ends_with("end\n"), "{alone}");
    let settings: &[&[(&str, &str)]] = &[
        &[],
        &[("batch", "1")],
        &[("chunk", "1 KiB"), ("batch", "3")],
        &[("wait", "suspend")],
        &[("calls", "block"), ("engines", "separate")],
        &[("token", "job"), ("job", "5 ms"), ("priority", "deadline")],
        &[("job", "announced"), ("token", "job"), ("batch_length", "1 s")],
    ];
    for (number, settings) in settings.iter().enumerate() {
        let place = Place::new(&format!("semantics-{number}"), EngineOrder::Fifo);
        assert_eq!(said(place.arbitrate(&mut plain(&semantics), settings)), alone, "{settings:?}");
        place.assert_attached(1);
        let (_, records) = place.trace();
        assert!(operations(&records) > 100, "{settings:?}: {} operations", operations(&records));
        assert!(place.is_free(), "{settings:?}");
    }
}

/// Nothing hangs, nothing stalls until the limit of a hold, and no other memory is written to.
#[test]
fn threads_that_wait_for_one_another_and_refused_calls_are_as_without_the_layer() {
    let Some(threads) = program("threads", "threads.c") else { return };
    let job: &[(&str, &str)] = &[("token", "job")];
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("finish_beside", &[]),
        ("finish_beside", &[("batch", "1"), ("token", "job")]),
        ("read_beside", &[]),
        ("by_turns", job),
        ("by_turns", &[("token", "job"), ("calls", "block")]),
        ("callback", &[("calls", "block")]),
        ("beyond", &[("chunk", "64 KiB")]),
        ("marker", &[]),
    ];
    for (number, (what, settings)) in cases.iter().enumerate() {
        let place = Place::new(&format!("threads-{number}"), EngineOrder::Fifo);
        let with = said(place.arbitrate(plain(&threads).arg(what), settings));
        assert_eq!(with, said(plain(&threads).arg(what)), "{settings:?}");
        let notices: Vec<String> = place.reports().into_iter().map(|report| report.text).collect();
        assert!(!notices.iter().any(|text| text.contains("unarbitrated")), "{what}, {settings:?}: {notices:?}");
        let (_, records) = place.trace();
        assert!(*what == "marker" || operations(&records) > 1, "{what}");
        assert!(place.is_free(), "{what}");
    }
}

/// `laxity gpu exec --job announced` preloads the layer: its loader hides its symbols.
#[test]
fn jobs_that_a_program_announces_have_its_deadlines() {
    let Some(threads) = program("announces", "threads.c") else { return };
    let place = Place::new("announces", EngineOrder::Fifo);
    let mut command = plain(&threads);
    command.arg("announces").env("LD_PRELOAD", support::layer());
    said(place.arbitrate(&mut command, &[("job", "announced"), ("priority", "deadline")]));
    let (header, records) = place.trace();
    let [task] = &header.tasks[..] else { panic!("{:?}", header.tasks) };
    assert!(task.deadline > Nanos(8_000_000_000) && task.deadline < Nanos(11_000_000_000), "{task:?}");
    assert_eq!(records.iter().filter(|record| matches!(record.event, Event::Release { .. })).count(), 3);
}

#[test]
fn without_an_arbitration_the_layer_does_nothing() {
    let Some(semantics) = program("idle", "semantics.c") else { return };
    let alone = said(&mut plain(&semantics));
    assert_eq!(said(plain(&semantics).env("OPENCL_LAYERS", support::layer())), alone);
}

/// As many calls with arguments drawn at random as there are in 6 programs of 400.
#[test]
fn wrong_arguments_are_answered_as_the_driver_answers_them() {
    let Some(errors) = program("errors", "errors.c") else { return };
    for seed in ["1", "2", "3", "4", "5", "6"] {
        let alone = said(plain(&errors).arg(seed));
        assert!(alone.contains(":-"), "some call is refused: {alone}");
        let place = Place::new(&format!("errors-{seed}"), EngineOrder::Fifo);
        assert_eq!(said(place.arbitrate(plain(&errors).arg(seed), &[])), alone, "seed {seed}");
        assert!(place.is_free());
        place.trace();
    }
}

#[test]
fn an_arbitration_that_is_not_there_is_reported_and_the_program_runs() {
    let Some(semantics) = program("refused", "semantics.c") else { return };
    let alone = said(&mut plain(&semantics));
    let place = Place::new("refused", EngineOrder::Fifo);
    for wrong in [("arbitration", "none"), ("gpu", "3"), ("priority", "500")] {
        assert_eq!(said(place.arbitrate(&mut plain(&semantics), &[wrong])), alone);
    }
    let reports = place.reports();
    let refused = |text: &str| reports.iter().any(|report| report.text.contains(text));
    assert!(refused("none") && refused("GPU 3") && refused("priority"), "{reports:?}");
}

#[test]
fn two_programs_at_a_time_never_run_operations_at_the_same_time() {
    let Some(semantics) = program("two", "semantics.c") else { return };
    let alone = said(&mut plain(&semantics));
    let place = Place::new("two", EngineOrder::Fifo);
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(|| said(place.arbitrate(&mut plain(&semantics), &[])))).collect();
        for run in runs {
            assert_eq!(run.join().expect("no panic"), alone);
        }
    });
    place.assert_attached(3);
    // The checker knows that an engine does one operation at a time, and finds each lock with one holder.
    let (header, records) = place.trace();
    let processes: std::collections::BTreeSet<&str> =
        header.tasks.iter().filter_map(|task| task.name.split(" (").nth(1)).collect();
    assert_eq!(processes.len(), 3);
    let waited = records.iter().filter(|record| matches!(record.event, Event::Request { .. })).count();
    assert!(waited > 100);
}

/// The stream's own thread looks at the stream now and then, and has nothing to do with its operations.
#[test]
fn no_other_thread_wakes_for_an_operation_where_no_other_program_wants_the_gpu() {
    let Some(program) = program("switches", "switches.c") else { return };
    for settings in [&[][..], &[("batch", "1")]] {
        let place = Place::new("switches", EngineOrder::Fifo);
        let text = said(place.arbitrate(&mut plain(&program), settings));
        let numbers: Vec<i64> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        let [operations, switches, milliseconds] = numbers[..] else { panic!("{text}") };
        assert!(switches <= operations / 20 + milliseconds / 10, "{settings:?}: {text}");
    }
}
