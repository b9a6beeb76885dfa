//! Latest-value edges: the newest value, whole and in place, whatever rates there are and whichever process dies.
#![cfg(debug_assertions)]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use laxity_graph::{LatestValue, MessageError, Registry, Spec, SpecError, WaitError};
use laxity_model::{Graph, LatestEdge};
use laxity_testing::{HANG, Process, Random, role};
use support::{Place, graph};

/// Longer than a page, so that a value is not written at once.
const LENGTH: usize = 6000;

/// sensor ..latest..> fusion, no tokens: both are sources.
fn spec() -> Spec {
    let latest = vec![LatestEdge { producer: 0, consumer: 1 }];
    let graph = Graph { latest, ..graph(&["sensor", "fusion"], Vec::new()) };
    Spec::new(graph).and_then(|spec| spec.with_latest(0, LENGTH as u32)).expect("it is valid")
}

/// Every word of the value of job `index` says so.
fn fill(value: &mut [u8], index: u64) {
    value.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&index.to_le_bytes()));
}

fn check(value: LatestValue<'_>) -> u64 {
    assert_eq!(value.bytes.len(), LENGTH);
    let number = value.job.to_le_bytes();
    assert!(
        value.bytes.chunks(8).all(|chunk| chunk == number),
        "job {}: torn, or overwritten while it is read",
        value.job
    );
    value.job
}

/// Not a test by itself: what the processes do that tests start.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    let registry = Registry::at(place);
    let graph = registry.attach("g").expect("the test is attached");
    let mut node = graph.claim(&role).expect("its process is gone");
    loop {
        one_job(&mut node, &mut 0);
    }
}

/// One job of either node. A reader looks twice: the value stays as it is while the job lasts, and never gets older.
fn one_job(node: &mut laxity_graph::Node, newest: &mut u64) {
    let is_sensor = node.position() == 0;
    match node.wait_for(HANG) {
        Ok(mut job) if is_sensor => {
            let index = job.index();
            fill(job.latest_output(0).expect("its edge"), index);
            job.complete();
        }
        Ok(mut job) => {
            if let Some(value) = job.latest(0).expect("its edge") {
                let first = check(value);
                thread::yield_now();
                assert_eq!(check(job.latest(0).expect("its edge").expect("it was there")), first);
                assert!(first >= *newest, "{first} after {newest}");
                *newest = first;
            }
            job.complete();
        }
        Err(WaitError::Lost { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_job_reads_the_newest_complete_value_in_place_and_nothing_piles_up() {
    let place = Place::new("newest");
    let graph = place.create(&spec()).expect("the name is free");
    let (mut sensor, mut fusion) = (graph.claim("sensor").expect("free"), graph.claim("fusion").expect("free"));
    let mut job = fusion.wait().expect("it waits for nothing");
    assert_eq!(job.latest(0), Ok(None), "no job of the sensor is complete");
    job.complete();
    for index in 0..1_000 {
        let mut job = sensor.wait().expect("it waits for nothing");
        let value = job.latest_output(0).expect("its edge");
        assert_eq!(value.as_ptr() as usize % 64, 0, "aligned for vector instructions");
        fill(value, index);
        job.complete();
    }
    let mut job = fusion.wait().expect("it waits for nothing");
    assert_eq!(check(job.latest(0).expect("its edge").expect("a value")), 999);
    // What comes while the job lasts is for the next.
    for value in [&b"short"[..], b""] {
        let mut written = sensor.wait().expect("it waits for nothing");
        written.write_latest(0, value).expect("it fits");
        written.complete();
    }
    assert_eq!(check(job.latest(0).expect("its edge").expect("a value")), 999);
    job.complete();
    let mut job = fusion.wait().expect("it waits for nothing");
    assert_eq!(job.latest(0), Ok(Some(LatestValue { job: 1_001, bytes: b"" })));
    assert_eq!(job.latest_output(0), Err(MessageError::NoRing { edge: 0 }), "it reads there");
    job.complete();
    let mut job = sensor.wait().expect("it waits for nothing");
    let too_long = MessageError::TooLong { edge: 0, length: LENGTH + 1, longest: LENGTH as u32 };
    assert_eq!(job.truncate_latest(0, LENGTH + 1), Err(too_long));
    assert_eq!(job.latest(0), Err(MessageError::NoRing { edge: 0 }));
    assert_eq!(spec().with_latest(1, 8), Err(SpecError::NoEdge { edge: 1, edges: 1 }));
}

/// Two threads at full speed, each overtaking the other.
#[test]
fn no_value_is_torn_or_overwritten_while_it_is_read() {
    let place = Place::new("torn");
    let graph = place.create(&spec()).expect("the name is free");
    let (mut sensor, mut fusion) = (graph.claim("sensor").expect("free"), graph.claim("fusion").expect("free"));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                one_job(&mut sensor, &mut 0);
            }
        });
        // Also if this thread panics.
        let _over = Over(&is_over);
        let (mut newest, mut reads) = (0, 0);
        while reads < 20_000 || newest < 5_000 {
            one_job(&mut fusion, &mut newest);
            reads += 1;
        }
    });
}

/// Says that the other thread is to end.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sixty times, at random instants, either process is killed, and another one takes its place.
#[test]
fn a_killed_writer_or_reader_leaves_whole_values_and_the_next_goes_on() {
    let place = Place::new("killed");
    let graph = place.create(&spec()).expect("the name is free");
    let mut random = Random::new();
    let mut writer = Process::start(&place, "sensor");
    let mut reader = Process::start(&place, "fusion");
    for _ in 0..60 {
        random.pause(20_000);
        let (victim, role) = if random.below(2) == 0 { (&mut writer, "sensor") } else { (&mut reader, "fusion") };
        // A reader that sees a torn or an older value ends.
        assert!(victim.is_running(), "{role} saw what it must not");
        victim.kill();
        *victim = Process::start(&place, role);
    }
    assert!(reader.is_running(), "the reader saw what it must not");
    reader.kill();
    let mut fusion = graph.claim("fusion").expect("its process is gone");
    let mut newest = 0;
    let before = graph.status(0).completed;
    for _ in 0..1_000 {
        one_job(&mut fusion, &mut newest);
    }
    assert!(newest + 2 >= before, "the newest of {before} jobs is {newest}");
    writer.kill();
    let mut sensor = graph.claim("sensor").expect("its process is gone");
    one_job(&mut sensor, &mut 0);
    let last = graph.status(0).completed - 1;
    one_job(&mut fusion, &mut newest);
    assert_eq!(newest, last, "what the next owner writes is read");
}
