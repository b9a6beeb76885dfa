//! Graphs of data objects, carried out by threads that take their time, compute what a loop computes.

mod support;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::thread;
use std::time::Duration;

use laxity_graph::{Access, Graph, Job, Node, Parameter, Pipeline, Spec};
use laxity_model::Nanos;
use proptest::prelude::*;
use support::Place;

/// Long enough for any machine: reached only by what hangs.
const HANG: Nanos = Nanos::from_secs(20);
const JOBS: u64 = 16;

/// Nodes in the order in which the loop calls them, each with its uses of objects.
#[derive(Clone, Debug)]
struct Program {
    /// Bytes and depth.
    objects: Vec<(usize, u32)>,
    nodes: Vec<Vec<(usize, Access)>>,
    /// How long jobs take follows from it.
    seed: u64,
}

/// Up to six nodes and four objects: a node writes each, those after it may read or change it, and any may read what is
/// in a delay of earlier jobs.
fn programs() -> impl Strategy<Value = Program> {
    let object = (1_usize..100, 0_u32..4);
    (2_usize..=6, prop::collection::vec(object, 1..=4), any::<u64>()).prop_flat_map(|(nodes, objects, seed)| {
        let uses = objects.iter().map(move |&(_, depth)| {
            let choices = prop::collection::vec((0_u8..5, 0..=depth), nodes);
            (0..nodes, choices)
        });
        uses.collect::<Vec<_>>().prop_map(move |uses| program(nodes, objects.clone(), &uses, seed))
    })
}

fn program(nodes: usize, objects: Vec<(usize, u32)>, uses: &[(usize, Vec<(u8, u32)>)], seed: u64) -> Program {
    let mut program = Program { objects, nodes: vec![Vec::new(); nodes], seed };
    for (object, (writer, choices)) in uses.iter().enumerate() {
        let depth = program.objects[object].1;
        for (node, &(choice, ago)) in choices.iter().enumerate() {
            let accesses = &mut program.nodes[node];
            if node == *writer {
                accesses.push((object, Access::Write));
            }
            match choice {
                1 if node > *writer && depth == 0 => accesses.push((object, Access::Change)),
                2 if node > *writer => accesses.push((object, Access::Read { ago: 0 })),
                3 if ago > 0 => accesses.push((object, Access::Read { ago })),
                4 => accesses.extend((1..=ago).map(|ago| (object, Access::Read { ago }))),
                _ => {}
            }
        }
    }
    program
}

fn name(kind: &str, number: usize) -> String {
    format!("{kind}{number}")
}

/// What a delay contains before the first job.
fn initial(object: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (object * 31 + index) as u8).collect()
}

impl Program {
    fn build(&self, replicas: u32) -> Spec {
        let mut pipeline = Pipeline::new("g", Nanos::from_millis(10));
        for (object, &(bytes, depth)) in self.objects.iter().enumerate() {
            let name = name("object", object);
            pipeline = match depth {
                0 => pipeline.object(&name, bytes),
                _ => pipeline.delay_from(&name, depth, &initial(object, bytes)),
            };
        }
        for (node, uses) in self.nodes.iter().enumerate() {
            let parameter = |&(object, access): &(usize, Access)| {
                let object = name("object", object);
                match access {
                    Access::Read { ago } => Parameter::past(&object, ago),
                    Access::Write => Parameter::output(&object),
                    Access::Change => Parameter::inout(&object),
                }
            };
            pipeline = pipeline.node(&name("node", node), uses.iter().map(parameter));
        }
        pipeline.build(replicas).expect("it can be")
    }

    /// What each node made of its inputs in each job, by a loop.
    fn looped(&self) -> Vec<Vec<u64>> {
        let mut values: BTreeMap<(usize, i64), Vec<u8>> = BTreeMap::new();
        for (object, &(bytes, depth)) in self.objects.iter().enumerate() {
            for ago in 1..=i64::from(depth) {
                values.insert((object, -ago), initial(object, bytes));
            }
        }
        let mut digests = vec![Vec::new(); self.nodes.len()];
        for job in 0..JOBS {
            for (node, uses) in self.nodes.iter().enumerate() {
                let mut digest = Digest::of(node, job);
                for &(object, access) in uses {
                    match access {
                        Access::Read { ago } => digest.read(&values[&(object, job as i64 - i64::from(ago))]),
                        Access::Change => digest.read(&values[&(object, job as i64)]),
                        Access::Write => {}
                    }
                }
                for &(object, access) in uses {
                    let key = (object, job as i64);
                    match access {
                        Access::Write => {
                            let value = values.entry(key).or_insert_with(|| vec![0; self.objects[object].0]);
                            digest.write(value);
                        }
                        Access::Change => digest.change(values.get_mut(&key).expect("it is written")),
                        Access::Read { .. } => {}
                    }
                }
                for &(object, access) in uses {
                    if let Access::Read { ago } = access {
                        digest.read(&values[&(object, job as i64 - i64::from(ago))]);
                    }
                }
                digests[node].push(digest.0);
            }
        }
        digests
    }

    /// The same, by a thread for each node.
    fn live(&self, graph: &Graph) -> Vec<Vec<u64>> {
        thread::scope(|scope| {
            let threads: Vec<_> =
                (0..self.nodes.len()).map(|node| scope.spawn(move || self.node(graph, node))).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not fail")).collect()
        })
    }

    fn node(&self, graph: &Graph, node: usize) -> Vec<u64> {
        let mut claimed = graph.claim(&name("node", node)).expect("it is free");
        let work = |index| {
            let mut job = claimed.wait_for(HANG).expect("a job in time");
            assert_eq!(job.index(), index);
            self.dawdle(node, index, 0);
            let digest = self.work(&mut job, node, || self.dawdle(node, index, 1));
            job.complete();
            digest
        };
        (0..JOBS).map(work).collect()
    }

    /// The same, by one thread: a job of the node `slow` is begun, all others go as far as they can, and then it is done.
    fn starved(&self, graph: &Graph, slow: usize) -> Vec<Vec<u64>> {
        let mut digests = vec![Vec::new(); self.nodes.len()];
        let claim = |node| graph.claim(&name("node", node)).expect("it is free");
        let mut nodes: Vec<Node> = (0..self.nodes.len()).map(claim).collect();
        let mut starved = nodes.remove(slow);
        while digests.iter().any(|digests| digests.len() < JOBS as usize) {
            let mut begun = if digests[slow].len() < JOBS as usize { starved.try_wait().ok() } else { None };
            let mut is_stuck = begun.is_none();
            for _ in 0..JOBS {
                for node in &mut nodes {
                    let position = node.position();
                    if let (true, Ok(mut job)) = (digests[position].len() < JOBS as usize, node.try_wait()) {
                        digests[position].push(self.work(&mut job, position, || {}));
                        job.complete();
                        is_stuck = false;
                    }
                }
            }
            assert!(!is_stuck, "everybody waits");
            if let Some(mut job) = begun.take() {
                digests[slow].push(self.work(&mut job, slow, || {}));
                job.complete();
            }
        }
        digests
    }

    /// What a job does, and what it makes of its inputs.
    fn work(&self, job: &mut Job<'_>, node: usize, dawdle: impl FnOnce()) -> u64 {
        let uses = &self.nodes[node];
        let mut digest = Digest::of(node, job.index());
        let (inputs, mut outputs) = job.objects();
        for &(object, access) in uses {
            match access {
                Access::Read { ago } => digest.read(inputs.past(object, ago).expect("declared")),
                Access::Change => digest.read(outputs.get(object).expect("declared")),
                Access::Write => {}
            }
        }
        for &(object, access) in uses {
            match access {
                Access::Write => digest.write(outputs.get(name("object", object).as_str()).expect("declared")),
                Access::Change => digest.change(outputs.get(object).expect("declared")),
                Access::Read { .. } => {}
            }
        }
        dawdle();
        // They may have changed since.
        for &(object, access) in uses {
            if let Access::Read { ago } = access {
                digest.read(inputs.past(object, ago).expect("declared"));
            }
        }
        digest.0
    }

    /// Some nodes are always slow, so that those before them come around to what they use; others now and then.
    fn dawdle(&self, node: usize, job: u64, part: u8) {
        let number = |what: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = DefaultHasher::new();
            what(&mut hasher);
            hasher.finish()
        };
        let is_slow = number(&|hasher| (self.seed, node).hash(hasher)) % 3 == 0;
        let chance = number(&|hasher| (self.seed, node, job, part).hash(hasher));
        match chance % 8 {
            _ if is_slow => thread::sleep(Duration::from_micros(300)),
            0 => thread::sleep(Duration::from_micros(chance % 1000)),
            1..4 => thread::yield_now(),
            _ => {}
        }
    }
}

/// What a job makes of its inputs.
struct Digest(u64);

impl Digest {
    fn of(node: usize, job: u64) -> Digest {
        Digest((node as u64) << 32 | job)
    }

    fn read(&mut self, bytes: &[u8]) {
        let mut hasher = DefaultHasher::new();
        (self.0, bytes).hash(&mut hasher);
        self.0 = hasher.finish();
    }

    fn write(&self, bytes: &mut [u8]) {
        let word = self.0.to_le_bytes();
        bytes.iter_mut().zip(word.iter().cycle()).for_each(|(byte, other)| *byte = *other);
    }

    fn change(&self, bytes: &mut [u8]) {
        let word = self.0.to_le_bytes();
        bytes.iter_mut().zip(word.iter().cycle()).for_each(|(byte, other)| *byte = byte.wrapping_mul(3) ^ other);
    }
}

/// The writer of the delay and its reader share nothing else, so that only the delay's own feedback holds the writer back:
/// over the node between them it may be twice as many jobs ahead.
#[test]
fn a_delay_keeps_what_a_node_far_downstream_still_reads() {
    let read = |ago| Access::Read { ago };
    let nodes = vec![
        vec![(0, Access::Write), (2, Access::Write)],
        vec![(0, read(0)), (1, Access::Write)],
        vec![(1, read(0)), (2, read(1))],
    ];
    let program = Program { objects: vec![(8, 0), (8, 0), (8, 1)], nodes, seed: 0 };
    for replicas in 1..=3 {
        let place = Place::new("downstream");
        let graph = place.create(&program.build(replicas)).expect("the name is free");
        assert_eq!(program.starved(&graph, 2), program.looped(), "{replicas} replicas");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the number of replicas, and whichever node is slow.
    #[test]
    fn threads_compute_what_a_loop_computes(program in programs(), replicas in 1_u32..=4) {
        let place = Place::new("threads");
        let graph = place.create(&program.build(replicas)).expect("the name is free");
        prop_assert_eq!(program.live(&graph), program.looped());
    }

    /// However far ahead of one node all others get. Without threads, so that what overtakes always does.
    #[test]
    fn a_slow_node_finds_its_inputs(program in programs(), replicas in 1_u32..=4) {
        let spec = program.build(replicas);
        for slow in 0..program.nodes.len() {
            let place = Place::new("slow");
            let graph = place.create(&spec).expect("the name is free");
            prop_assert_eq!(program.starved(&graph, slow), program.looped(), "node {} is slow", slow);
        }
    }

    #[test]
    fn a_process_that_attaches_finds_the_same_graph(program in programs(), replicas in 1_u32..=4) {
        let place = Place::new("attach");
        let spec = program.build(replicas);
        let graph = place.create(&spec).expect("the name is free");
        let other = place.attach("g").expect("it is there");
        prop_assert_eq!(other.spec(), &spec);
        let bytes: usize = spec.objects().iter().map(|object| object.bytes * object.copies(replicas) as usize).sum();
        prop_assert!(graph.memory() > bytes);
    }
}
