//! Graphs of threads that take their time compute what a loop computes.

mod support;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use laxity_graph::Access;
use laxity_vx::{Bytes, Context, Delay, Parameter, Verified};
use proptest::prelude::*;
use support::{Place, frames};

const FRAMES: u64 = 12;

/// Nodes in the order in which the loop calls them, each with its uses of objects.
#[derive(Clone, Debug)]
struct Program {
    /// Bytes, and slots.
    objects: Vec<(usize, u32)>,
    nodes: Vec<Vec<(usize, Access)>>,
    /// How long jobs take follows from it.
    seed: u64,
}

/// For each node and frame what it made of its inputs.
type Digests = Vec<Vec<u64>>;

/// Up to five nodes and four objects: a node writes each, those behind it may read or change it, and any may read what is
/// in slots of earlier frames.
fn programs() -> impl Strategy<Value = Program> {
    let object = (1_usize..100, 1_u32..4);
    (2_usize..=5, prop::collection::vec(object, 1..=4), any::<u64>()).prop_flat_map(|(nodes, objects, seed)| {
        let uses = objects.iter().map(move |&(_, slots)| (0..nodes, prop::collection::vec((0_u8..4, 0..slots), nodes)));
        uses.collect::<Vec<_>>().prop_map(move |uses| program(nodes, objects.clone(), &uses, seed))
    })
}

fn program(nodes: usize, objects: Vec<(usize, u32)>, uses: &[(usize, Vec<(u8, u32)>)], seed: u64) -> Program {
    let mut program = Program { objects, nodes: vec![Vec::new(); nodes], seed };
    for (object, (writer, choices)) in uses.iter().enumerate() {
        let is_delay = program.objects[object].1 > 1;
        for (node, &(choice, ago)) in choices.iter().enumerate() {
            let accesses = &mut program.nodes[node];
            if node == *writer {
                accesses.push((object, Access::Write));
            }
            match choice {
                1 if node > *writer && !is_delay => accesses.push((object, Access::Change)),
                2 if node > *writer => accesses.push((object, Access::Read { ago: 0 })),
                3 if ago > 0 => accesses.push((object, Access::Read { ago })),
                _ => {}
            }
        }
    }
    program
}

/// What a delay contains at first.
fn initial(object: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (object * 31 + index) as u8).collect()
}

fn digest(node: usize, frame: u64, inputs: &[Vec<u8>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (node, frame, inputs).hash(&mut hasher);
    hasher.finish()
}

fn write(bytes: &mut [u8], digest: u64) {
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = digest.rotate_left(index as u32) as u8;
    }
}

impl Program {
    /// The graph of it, whose nodes write down their digests.
    fn graph(&self, context: &Context, digests: &Arc<Mutex<Digests>>) -> Verified {
        let mut graph = context.graph("program");
        let object = |(object, &(bytes, slots)): (usize, &(usize, u32))| {
            let fill = |place: &mut [u8]| place.copy_from_slice(&initial(object, bytes));
            graph.delay_from(&format!("object{object}"), Bytes(bytes), slots, fill)
        };
        let objects: Vec<Delay<Bytes>> = self.objects.iter().enumerate().map(object).collect();
        for (node, uses) in self.nodes.iter().enumerate() {
            let parameter = |&(object, access): &(usize, Access)| match access {
                Access::Read { ago } => Parameter::input(objects[object].ago(ago)),
                Access::Write => Parameter::output(objects[object]),
                Access::Change => Parameter::inout(objects[object]),
            };
            let parameters: Vec<Parameter> = uses.iter().map(parameter).collect();
            let (uses, objects, digests) = (uses.clone(), objects.clone(), digests.clone());
            let mut pauses = Pauses::of(self.seed, node);
            graph.node(&format!("node{node}"), parameters, move |job| {
                pauses.pause();
                let frame = job.index();
                let (inputs, mut outputs) = job.objects();
                let mut found = Vec::new();
                let mut written = Vec::new();
                for &(object, access) in &uses {
                    match access {
                        Access::Read { ago } => found.push(inputs.read(objects[object].ago(ago))?.to_vec()),
                        Access::Write => written.push(outputs.write(objects[object])?),
                        Access::Change => {
                            let bytes = outputs.write(objects[object])?;
                            found.push(bytes.to_vec());
                            written.push(bytes);
                        }
                    }
                }
                let digest = digest(node, frame, &found);
                written.iter_mut().for_each(|bytes| write(bytes, digest));
                pauses.pause();
                // What it only reads is still the same.
                let reads = uses.iter().filter_map(|&(object, access)| match access {
                    Access::Read { ago } => Some(objects[object].ago(ago)),
                    _ => None,
                });
                for slot in reads {
                    assert!(
                        found.iter().any(|bytes| inputs.read(slot).is_ok_and(|now| now == bytes)),
                        "read twice, and different"
                    );
                }
                digests.lock().expect("no panic")[node].push(digest);
                Ok(())
            });
        }
        graph.verify().expect("it is one that a loop could be")
    }

    /// What each node makes of its inputs in each frame, by a loop.
    fn looped(&self) -> Digests {
        let mut values: BTreeMap<(usize, i64), Vec<u8>> = BTreeMap::new();
        for (object, &(bytes, slots)) in self.objects.iter().enumerate() {
            (1..i64::from(slots)).for_each(|ago| drop(values.insert((object, -ago), initial(object, bytes))));
        }
        let mut digests = vec![Vec::new(); self.nodes.len()];
        for frame in 0..FRAMES as i64 {
            for (node, uses) in self.nodes.iter().enumerate() {
                let read = |&(object, access): &(usize, Access)| match access {
                    Access::Read { ago } => Some(values[&(object, frame - i64::from(ago))].clone()),
                    Access::Change => Some(values[&(object, frame)].clone()),
                    Access::Write => None,
                };
                let found: Vec<Vec<u8>> = uses.iter().filter_map(read).collect();
                let digest = digest(node, frame as u64, &found);
                for &(object, access) in uses.iter().filter(|(_, access)| !matches!(access, Access::Read { .. })) {
                    let fresh = || vec![0; self.objects[object].0];
                    let value = values.entry((object, frame)).or_insert_with(fresh);
                    assert!(matches!(access, Access::Write | Access::Change));
                    write(value, digest);
                }
                digests[node].push(digest);
            }
        }
        digests
    }
}

/// Some nodes are always slow, so that those before them come around to what they use; others now and then.
struct Pauses {
    is_slow: bool,
    random: u64,
}

impl Pauses {
    fn of(seed: u64, node: usize) -> Pauses {
        let random = digest(node, seed, &[]);
        Pauses { is_slow: random.is_multiple_of(3), random }
    }

    fn pause(&mut self) {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match self.random >> 60 {
            _ if self.is_slow => thread::sleep(Duration::from_micros(400)),
            0 => thread::sleep(Duration::from_micros(700)),
            1..=4 => thread::yield_now(),
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Paper 003, section 5.4.1: with any number of replicas.
    #[test]
    fn any_number_of_replicas_computes_what_a_loop_computes(program in programs(), extra in 0_u32..100) {
        // Not all that is generated is used.
        prop_assume!((0..program.objects.len()).all(|object| program.nodes.iter().flatten().any(|used| used.0 == object)));
        let place = Place::new("pipelined");
        let digests = Arc::new(Mutex::new(vec![Vec::new(); program.nodes.len()]));
        let graph = program.graph(&place.context(), &digests);
        let replicas = 1 + extra % (graph.depth() + 1);
        let mut options = frames(FRAMES);
        options.replicas = Some(replicas);
        let mut run = graph.spawn(&options).expect("it can be");
        let times = run.wait().expect("no kernel fails");
        prop_assert_eq!(times.completed, FRAMES);
        drop(run);
        prop_assert!(place.is_empty(), "the graph's memory is gone");
        prop_assert_eq!(&*digests.lock().expect("no panic"), &program.looped());
    }
}
