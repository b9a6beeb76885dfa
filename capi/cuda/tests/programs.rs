//! Programs that know nothing of Laxity compute under arbitration what they compute without, however they reach the driver.

mod support;

use laxity_model::{EngineOrder, Nanos, TaskId};
use laxity_trace::metrics::Metrics;
use laxity_trace::{Event, Record, Sink};
use support::{Place, Reach, bindings, needs_soft_driver, operations, plain, program, python, said};

#[test]
fn results_are_those_without_the_layer_however_the_driver_is_reached() {
    for reach in Reach::ALL {
        let (program, test) = (program(reach), format!("results-{reach:?}"));
        let without = said(&mut plain(&program, &test));
        for settings in [&[("batch", "16")][..], &[("chunk", "64 KiB"), ("token", "job")], &[("wait", "suspend")]] {
            let place = Place::new(&test, EngineOrder::Fifo);
            let with = said(place.arbitrate(&mut plain(&program, &test), settings));
            assert_eq!(with, without, "{reach:?}, {settings:?}");
            place.assert_attached(1);
            assert!(place.is_free(), "{reach:?}");
            let (_, records) = place.trace();
            let [kernels, into, out] = operations(&records);
            assert!(kernels >= 20 && into >= 4 && out >= 4, "{reach:?}: {kernels} {into} {out}");
        }
    }
}

#[test]
fn a_bad_handle_is_refused_by_the_driver_as_without_the_layer() {
    if needs_soft_driver() {
        return;
    }
    let place = Place::new("bad", EngineOrder::Fifo);
    let mut command = plain(program(Reach::ProcAddress), "bad");
    assert_eq!(said(place.arbitrate(command.arg("bad_stream"), &[])), "end\n");
    assert!(place.is_free());
}

#[test]
fn the_official_python_bindings_compute_the_same() {
    let Some(python) = python() else { return };
    let without = said(plain(&python, "bindings").arg(bindings()));
    let place = Place::new("bindings", EngineOrder::Fifo);
    let with = said(place.arbitrate(plain(&python, "bindings").arg(bindings()), &[]));
    assert_eq!(with, without);
    place.assert_attached(1);
    let (header, records) = place.trace();
    assert!(operations(&records)[0] >= 20, "{:?}", operations(&records));
    assert!(header.tasks.iter().any(|task| task.name.starts_with("bindings.py")), "{:?}", header.tasks);
}

#[test]
fn threads_compute_the_same_with_streams_of_their_own_and_with_one_for_all() {
    for (reach, tasks) in [(Reach::PerThread, 4), (Reach::ProcAddress, 1)] {
        let place = Place::new("threads", EngineOrder::Fifo);
        let text = said(place.arbitrate(plain(program(reach), "threads").arg("threads"), &[]));
        assert_eq!(text, "threads 1 1\nend\n");
        place.assert_attached(1);
        let (header, _) = place.trace();
        assert_eq!(header.tasks.len(), tasks, "{reach:?}: {:?}", header.tasks);
    }
}

#[test]
fn two_programs_at_a_time_compute_the_same_and_no_engine_does_two_operations_at_once() {
    let program = program(Reach::ProcAddress);
    for calls in ["return", "block"] {
        let place = Place::by_priority("two");
        let start = |priority| {
            let mut command = plain(&program, "two");
            let command = command.args(["kernels", "30", "2000"]);
            place.arbitrate(command, &[("priority", priority), ("calls", calls)]).spawn().expect("it starts")
        };
        for mut child in [start("10"), start("50"), start("background")] {
            assert!(child.wait().expect("it is ours").success());
        }
        let (_, records) = place.trace();
        assert!(operations(&records)[0] >= 3 * 30, "{calls}: {:?}", operations(&records));
        assert!(place.is_free());
    }
}

#[test]
fn copies_are_broken_into_chunks_that_are_granted_one_by_one() {
    let place = Place::new("chunks", EngineOrder::Fifo);
    let settings = [("chunk", "4 KiB"), ("batch", "1")];
    said(place.arbitrate(plain(program(Reach::Dlsym), "chunks").args(["kernels", "1", "10"]), &settings));
    let (_, whole) = place.trace();
    let place = Place::new("chunks", EngineOrder::Fifo);
    let settings = [("chunk", "1 KiB"), ("batch", "1")];
    said(place.arbitrate(plain(program(Reach::Dlsym), "chunks").args(["kernels", "1", "10"]), &settings));
    let (_, parts) = place.trace();
    // 4,000 bytes in, 4,000 bytes out.
    assert_eq!((operations(&whole)[1], operations(&whole)[2]), (1, 1));
    assert_eq!((operations(&parts)[1], operations(&parts)[2]), (4, 4));
}

#[test]
fn threads_are_made_to_wait_suspended_where_settings_ask() {
    let program = program(Reach::Linked);
    assert_eq!(said(plain(&program, "flags").arg("flags")), "flags 0 1\nend\n");
    let place = Place::new("flags", EngineOrder::Fifo);
    let settings = [("wait", "suspend")];
    assert_eq!(said(place.arbitrate(plain(&program, "flags").arg("flags"), &settings)), "flags 4 4\nend\n");
}

/// Paper 004's interposer: best-effort CPUs are regulated while the program uses an engine, and no longer.
#[test]
fn the_bandwidth_lock_is_held_while_an_engine_is_and_free_after_the_program() {
    let place = Place::new("bandwidth", EngineOrder::Fifo);
    let mut command = plain(program(Reach::ProcAddress), "bandwidth");
    let command = place.arbitrate(command.args(["kernels", "30", "2000"]), &[("bandwidth", "64 MB/s")]);
    let mut child = command.spawn().expect("it starts");
    let mut budgets = std::collections::BTreeSet::new();
    while child.try_wait().expect("it is ours").is_none() {
        budgets.insert(place.arbitration.bandwidth_budget());
        std::thread::sleep(std::time::Duration::from_micros(300));
    }
    assert!(child.wait().expect("it is ours").success());
    // None before the first kernel, and after the last one at the latest.
    assert_eq!(budgets.into_iter().flatten().collect::<Vec<_>>(), [64_000_000]);
    assert_eq!(place.arbitration.bandwidth_budget(), None);
    place.assert_attached(1);
    let without = Place::new("bandwidth", EngineOrder::Fifo);
    said(without.arbitrate(plain(program(Reach::ProcAddress), "bandwidth").args(["kernels", "3", "2000"]), &[]));
    assert_eq!(without.arbitration.bandwidth_budget(), None);
}

/// Nothing hangs, nothing stalls until the limit of a hold, and no other memory is written to.
#[test]
fn waits_and_refused_copies_are_as_without_the_layer() {
    let program = program(Reach::ProcAddress);
    let cases: [(&str, &[(&str, &str)]); 4] = [
        ("past_event", &[]),
        ("past_event", &[("wait", "suspend")]),
        ("beyond", &[("chunk", "64 KiB")]),
        ("overlap", &[("token", "job")]),
    ];
    for (what, settings) in cases {
        let place = Place::new(what, EngineOrder::Fifo);
        let with = said(place.arbitrate(plain(&program, what).arg(what), settings));
        assert_eq!(with, said(plain(&program, what).arg(what)), "{settings:?}");
        let notices: Vec<String> = place.reports().into_iter().map(|report| report.text).collect();
        assert!(!notices.iter().any(|text| text.contains("unarbitrated")), "{what}: {notices:?}");
        assert!(place.is_free(), "{what}");
    }
}

/// An event behind an operation is recorded late where no other stream is ordered with its own, and behind nothing else.
#[test]
fn an_operation_ends_when_the_driver_is_done_with_it_whichever_streams_come_meanwhile() {
    for (what, kernels) in [("own", 1), ("captured", 1), ("behind", 2)] {
        let lengths = lengths(&["come_later", what]);
        assert_eq!(lengths.len(), kernels, "{what}");
        // Each takes 20 ms, and what is behind the last one a second.
        assert!(lengths.iter().all(|length| (20_000_000..1_000_000_000).contains(length)), "{what}: {lengths:?}");
    }
}

/// A thread of the program waits, and not for the kernel alone.
#[test]
fn an_engine_is_unlocked_when_its_operation_is_complete_whatever_else_the_program_waits_for() {
    for what in ["stream", "event", "context", "shared"] {
        let lengths = lengths(&["wait_for_more", what]);
        assert_eq!(lengths.len(), 2, "{what}");
        assert!((20_000_000..1_000_000_000).contains(&lengths[1]), "{what}: {lengths:?}");
    }
}

/// For how many nanoseconds each operation of the program seems to have had its engine. It says the same without the layer.
fn lengths(arguments: &[&str]) -> Vec<u64> {
    let (program, test) = (program(Reach::ProcAddress), arguments.join("-"));
    let place = Place::new(&test, EngineOrder::Fifo);
    let with = said(place.arbitrate(plain(&program, &test).args(arguments), &[]));
    assert_eq!(with, said(plain(&program, &test).args(arguments)));
    let (_, records) = place.trace();
    let at = |is_meant: fn(&Event) -> bool| {
        let meant = records.iter().filter(move |record| is_meant(&record.event));
        meant.map(|record| record.at.0)
    };
    let began = at(|event| matches!(event, Event::EngineBegin { .. }));
    let ended = at(|event| matches!(event, Event::EngineEnd { .. }));
    began.zip(ended).map(|(began, ended)| ended - began).collect()
}

/// The thread that issues is to do what the stream waits for: it goes on after the limit, and the user is told.
#[test]
fn a_thread_that_is_held_back_for_something_of_its_own_goes_on_after_a_limit() {
    let place = Place::new("own", EngineOrder::Fifo);
    let mut command = plain(program(Reach::ProcAddress), "own");
    let text = said(place.arbitrate(command.arg("needs_its_thread"), &[("hold_limit", "50 ms")]));
    assert_eq!(text, "end\n");
    let notices: Vec<String> = place.reports().into_iter().map(|report| report.text).collect();
    let is_told =
        |text: &String| text.contains("spin waited 50 ms for something that its program may have to do first");
    assert!(notices.iter().any(is_told), "{notices:?}");
    assert!(place.is_free());
}

#[test]
fn without_an_arbitration_the_layer_does_nothing() {
    let place = Place::new("idle", EngineOrder::Fifo);
    let program = program(Reach::ProcAddress);
    let without = said(&mut plain(&program, "idle"));
    let mut command = plain(&program, "idle");
    let text = said(place.arbitrate(&mut command, &[]).env_remove("LAXITY_GPU_ARBITRATION"));
    assert_eq!(text, without);
}

#[test]
fn announced_jobs_have_their_deadlines_from_the_first_one_on() {
    let place = Place::by_priority("announced");
    let mut command = plain(program(Reach::ProcAddress), "announced");
    let settings = [("job", "announced"), ("priority", "deadline")];
    assert_eq!(said(place.arbitrate(command.arg("announces"), &settings)), "end\n");
    place.assert_attached(1);
    let (header, records) = place.trace();
    let [due, other] = &header.tasks[..] else { panic!("{:?}", header.tasks) };
    assert!(other.name.ends_with(", without deadlines)"), "{}", other.name);
    assert!(header.has_made_up_deadlines(TaskId(1)) && !header.has_made_up_deadlines(TaskId(0)));
    // As far as a job was announced from its first operation; at most that of the job which began at once.
    let ten = Nanos::from_secs(10);
    assert!(due.deadline <= ten && due.deadline > Nanos::from_secs(5), "{}", due.deadline);
    let released = |task| {
        let of = |record: &Record| match record.event {
            Event::Release { job, deadline } if job.task == TaskId(task) => Some((record.at, deadline)),
            _ => None,
        };
        records.iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(released(0).len(), 4);
    assert_eq!(released(1).len(), 6, "between them, and what has no deadline");
    for (at, deadline) in released(0) {
        let arrival = deadline.0.saturating_sub(due.deadline.0);
        assert!(arrival <= at.0 && deadline.saturating_since(at) <= ten, "{at} {deadline}");
    }
    let mut metrics = Metrics::new(&header);
    records.iter().for_each(|record| metrics.record(record.at, record.event));
    let end = records.last().expect("an end").at;
    let longest = metrics.finish(end).tasks[0].jobs.response_time.expect("four are complete").max;
    assert!(longest < ten, "{longest}: response times do not add up");
}
