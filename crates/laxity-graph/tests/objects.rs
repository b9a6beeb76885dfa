//! Data objects in the memory of a graph: which nodes may use them, from which process, and what a death leaves of them.
//!
//! The processes are this test program, started again for the test `child`.

mod support;

use std::thread;

use laxity_graph::{
    Access, Channel, ClaimError, Graph, Node, ObjectError, ObjectKey, Parameter, Pipeline, Registry, WaitError,
};
use laxity_model::Nanos;
use laxity_testing::{Process, role};
use support::Place;

/// Long enough for any machine: reached only by what hangs.
const HANG: Nanos = Nanos::from_secs(20);
const JOBS: u64 = 40;
const RING: Channel = Channel::Ring { message: 4, capacity: 1 };

/// The camera writes an image; the filter adds to it what the tracker wrote a job ago; the tracker writes their sum.
fn tracker() -> Pipeline {
    Pipeline::new("g", Nanos::from_millis(10))
        .object("image", 100)
        .delay_from("sum", 2, &7_u64.to_le_bytes())
        .node("camera", [Parameter::output("image")])
        .node("filter", [Parameter::inout("image"), Parameter::past("sum", 1), Parameter::past("sum", 2)])
        .node("tracker", [Parameter::input("image"), Parameter::output("sum")])
}

/// The tracker's sums, by a loop.
fn sums() -> Vec<u64> {
    let mut sums = vec![7_u64, 7];
    for job in 0..JOBS {
        let before = sums[sums.len() - 1].wrapping_add(sums[sums.len() - 2]) as u8;
        let image = [(job as u8).wrapping_add(before); 100];
        sums.push(image.iter().map(|&byte| u64::from(byte)).sum());
    }
    sums.split_off(2)
}

fn camera(node: &mut Node) -> Result<(), WaitError> {
    let mut job = node.wait_for(HANG)?;
    let index = job.index();
    job.write("image").expect("an output").fill(index as u8);
    job.complete();
    Ok(())
}

fn filter(node: &mut Node) -> Result<(), WaitError> {
    let mut job = node.wait_for(HANG)?;
    let (inputs, mut outputs) = job.objects();
    let sum = |ago| inputs.past_as::<u64>("sum", ago).expect("a declared input")[0];
    let before = sum(1).wrapping_add(sum(2)) as u8;
    outputs.get("image").expect("an inout").iter_mut().for_each(|byte| *byte = byte.wrapping_add(before));
    job.complete();
    Ok(())
}

fn tracked(node: &mut Node) -> Result<u64, WaitError> {
    let mut job = node.wait_for(HANG)?;
    let sum = job.read("image").expect("an input").iter().map(|&byte| u64::from(byte)).sum();
    job.write_as::<u64>("sum").expect("an output")[0] = sum;
    job.complete();
    Ok(sum)
}

/// Not a test by itself: what the processes do that tests start.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    let graph = Registry::at(place).attach("g").expect("it was created");
    match role.as_str() {
        "camera" => {
            let mut node = graph.claim("camera").expect("it is free");
            (0..JOBS).for_each(|_| camera(&mut node).expect("room for it"));
            node.terminate();
        }
        "filter" => {
            let mut node = graph.claim("filter").expect("it is free");
            while filter(&mut node).is_ok() {}
        }
        "die in the middle" => {
            let mut node = graph.claim("filter").expect("it is free");
            let mut job = node.wait_for(HANG).expect("its inputs");
            job.write("image").expect("an inout")[..50].fill(99);
            std::process::abort();
        }
        _ => panic!("no such role: {role}"),
    }
}

#[test]
fn processes_find_objects_by_the_name_of_the_graph_alone() {
    for replicas in 1..=3 {
        let place = Place::new(&format!("processes-{replicas}"));
        let graph = place.create(&tracker().build(replicas).expect("it can be")).expect("the name is free");
        let mut processes = ["camera", "filter"].map(|role| Process::start(&place, role));
        let mut node = graph.claim("tracker").expect("it is free");
        let mut found = Vec::new();
        loop {
            match tracked(&mut node) {
                Ok(sum) => found.push(sum),
                Err(WaitError::Terminated { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(found, sums());
        for process in &mut processes {
            assert!(process.wait().success());
        }
        drop((node, graph));
        assert!(place.files().is_empty(), "the last one out took the memory along");
    }
}

/// The filter dies in its second job, when it has changed half of the image. Its next owner gets the same job
/// and the same inputs, however far the others could go on, and is told; the image is as the dead left it.
#[test]
fn the_next_owner_finds_the_inputs_of_the_job_and_is_told_that_objects_may_be_half_changed() {
    let place = Place::new("death");
    let graph = place.create(&tracker().build(3).expect("it can be")).expect("the name is free");
    let mut nodes = ["camera", "filter", "tracker"].map(|name| graph.claim(name).expect("it is free"));
    let [source, first, sink] = &mut nodes;
    camera(source).expect("room");
    filter(first).expect("its inputs");
    let sum = tracked(sink).expect("its inputs");
    camera(source).expect("room");
    let [mut source, first, mut sink] = nodes;
    drop(first);
    assert!(!Process::start(&place, "die in the middle").wait().success());
    // The camera goes on until it comes around to the image of the job that is not complete.
    let ahead = (0..9).take_while(|_| match source.try_wait() {
        Ok(mut job) => {
            job.write("image").expect("an output").fill(200);
            job.complete();
            true
        }
        Err(WaitError::Lost { .. } | WaitError::TimedOut { .. }) => false,
        Err(error) => panic!("{error}"),
    });
    assert_eq!(ahead.count(), 2, "jobs 2 and 3");
    let mut node = claim_when_free(&graph, "filter");
    assert_eq!(node.interrupted(), Some(1));
    let mut job = node.wait_for(HANG).expect("the job that was not completed");
    assert_eq!((job.index(), job.is_resumed()), (1, true));
    let (inputs, mut outputs) = job.objects();
    assert_eq!(inputs.past_as::<u64>("sum", 1), Ok(&[sum][..]));
    assert_eq!(inputs.past_as::<u64>("sum", 2), Ok(&[7][..]));
    let image = outputs.get("image").expect("an inout");
    assert_eq!((&image[..50], &image[50..]), (&[99; 50][..], &[1; 50][..]), "what the dead changed stays changed");
    job.complete();
    tracked(&mut sink).expect("its inputs");
    let job = node.wait_for(HANG).expect("the camera is ahead");
    assert_eq!((job.index(), job.is_resumed()), (2, false));
}

fn claim_when_free(graph: &Graph, name: &str) -> Node {
    loop {
        match graph.claim(name) {
            Ok(node) => return node,
            Err(ClaimError::Claimed { .. } | ClaimError::Ending { .. }) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_job_that_is_dropped_comes_again_and_says_so() {
    let place = Place::new("dropped");
    let graph = place.create(&tracker().build(1).expect("it can be")).expect("the name is free");
    let mut node = graph.claim("camera").expect("it is free");
    assert!(!node.try_wait().expect("nothing is in its way").is_resumed());
    assert!(node.try_wait().expect("the same").is_resumed());
}

/// Each refusal names the node and the object.
#[test]
fn a_job_reaches_what_its_node_declares_and_nothing_else() {
    let place = Place::new("access");
    let pipeline = tracker().object("more", 8).node("also", [Parameter::output("more"), Parameter::past("sum", 1)]);
    let graph = place.create(&pipeline.build(2).expect("it can be")).expect("the name is free");
    let [image, sum] = ["image", "sum"].map(|name| graph.object(name).expect("it is declared"));
    assert_eq!(graph.object("imag"), None);
    let refusal = |node: &str, object: &str, access| {
        let (node, object) = (node.to_owned(), object.to_owned());
        ObjectError::NotDeclared { node, object, access }
    };

    let mut camera = graph.claim("camera").expect("it is free");
    let mut job = camera.try_wait().expect("nothing is in its way");
    let read = Access::Read { ago: 0 };
    assert_eq!(job.read("image"), Err(refusal("camera", "image", read)), "what it writes is undetermined");
    assert_eq!(job.read(sum), Err(refusal("camera", "sum", read)));
    assert_eq!(job.write(sum), Err(refusal("camera", "sum", Access::Write)));
    let strange = |object: &str| ObjectError::NoSuchObject { node: "camera".to_owned(), object: object.to_owned() };
    assert_eq!(job.write("imag"), Err(strange("imag")));
    assert_eq!(job.write(9), Err(strange("9")));
    assert_eq!(job.write(image).map(|bytes| bytes.len()), Ok(100));
    assert_eq!(job.write_as::<u32>("image").map(|words| words.len()), Ok(25));
    let error = job.write_as::<u64>("image").expect_err("100 bytes are no whole number of them");
    assert_eq!(error.to_string().split(", ").next(), Some("object image: its 100 bytes are no values of u64"));
    job.complete();

    let mut filter = graph.claim("filter").expect("it is free");
    let mut job = filter.try_wait().expect("the image is there");
    assert_eq!(job.read_past("sum", 3), Err(refusal("filter", "sum", Access::Read { ago: 3 })));
    assert_eq!(job.read("sum"), Err(refusal("filter", "sum", read)), "this job's comes later");
    assert_eq!(job.write("sum"), Err(refusal("filter", "sum", Access::Write)));
    let (inputs, mut outputs) = job.objects();
    let changed = ObjectError::Changed { node: "filter".to_owned(), object: "image".to_owned() };
    assert_eq!(inputs.get("image"), Err(changed));
    let twice = ObjectError::Twice { node: "filter".to_owned(), object: "image".to_owned() };
    assert_eq!(outputs.get_disjoint(["image", "image"]), Err(twice.clone()));
    assert_eq!(outputs.get_disjoint([ObjectKey::Name("image"), ObjectKey::Position(image)]), Err(twice));
    for error in [refusal("filter", "sum", read), refusal("filter", "sum", Access::Write)] {
        assert!(error.to_string().starts_with("node filter does not"), "{error}");
    }
}

#[test]
fn messages_and_objects_are_at_hand_together() {
    let place = Place::new("together");
    let pipeline = Pipeline::new("g", Nanos::from_millis(1)).object("a", 4).edge("n", "m", RING);
    let pipeline = pipeline.node("n", [Parameter::output("a")]).node("m", [Parameter::inout("a")]);
    let graph = place.create(&pipeline.build(1).expect("it can be")).expect("the name is free");
    let mut nodes = ["n", "m"].map(|name| graph.claim(name).expect("it is free"));
    let mut job = nodes[0].try_wait().expect("nothing is in its way");
    let ((_, mut messages), (_, mut objects)) = job.messages_and_objects();
    let (message, object) = (messages.get(0, 0).expect("a ring"), objects.get("a").expect("an output"));
    message.copy_from_slice(b"1234");
    object.copy_from_slice(b"5678");
    job.complete();
    let mut job = nodes[1].try_wait().expect("they are written");
    let ((messages, _), (_, mut objects)) = job.messages_and_objects();
    assert_eq!((messages.get(0, 0), objects.get("a")), (Ok(&b"1234"[..]), Ok(&mut b"5678".to_owned()[..])));
}

#[test]
fn several_objects_are_written_at_the_same_time_and_replicas_are_aligned() {
    let place = Place::new("several");
    let outputs = ["a", "b", "c"];
    let pipeline = outputs.iter().fold(Pipeline::new("g", Nanos::from_millis(1)), |it, name| it.object(name, 33));
    let pipeline = pipeline.node("n", outputs.map(Parameter::output)).node("m", outputs.map(Parameter::input));
    let graph = place.create(&pipeline.build(2).expect("it can be")).expect("the name is free");
    let mut nodes = ["n", "m"].map(|name| graph.claim(name).expect("it is free"));
    for number in 0..5_u8 {
        let mut job = nodes[0].try_wait().expect("its readers are done");
        let (_, mut writable) = job.objects();
        let [a, b, c] = writable.get_disjoint(outputs).expect("they differ");
        for (bytes, value) in [(a, 0), (b, 1), (c, 2)] {
            assert_eq!((bytes.as_ptr() as usize % 64, bytes.len()), (0, 33));
            bytes.fill(number + value);
        }
        job.complete();
        let job = nodes[1].try_wait().expect("they are written");
        for (name, value) in outputs.into_iter().zip(number..) {
            assert_eq!(job.read(name), Ok(&[value; 33][..]));
        }
        job.complete();
    }
}
