//! Messages that are handed on without a copy: buffers are swapped between rings.

mod support;

use std::collections::VecDeque;

use laxity_graph::{Channel, Graph, MessageError, Node, Spec, SpecError, SwappingError};
use laxity_model::Edge;
use proptest::prelude::*;
use support::{Place, back, edge, graph, ringed};

const LENGTH: u32 = 100;

/// a -> b -> c, whose rings exchange buffers.
fn chain() -> Spec {
    ringed(&["a", "b", "c"], vec![edge(0, 1), edge(1, 2)], LENGTH, 2)
        .with_swapping(&[0, 1])
        .expect("rings of one length")
}

fn claim(graph: &Graph) -> Vec<Node> {
    graph.spec().graph().nodes.iter().map(|node| graph.claim(&node.name).expect("it is free")).collect()
}

fn send(node: &mut Node, edge: usize, message: &[u8]) {
    let mut job = node.try_wait().expect("there is room");
    job.messages().1.write(edge, 0, message).expect("it fits");
    job.complete();
}

fn receive(node: &mut Node, edge: usize) -> Vec<u8> {
    let mut job = node.try_wait().expect("a message");
    let message = job.input(edge, 0).expect("a message").to_vec();
    job.complete();
    message
}

#[test]
fn what_is_handed_on_stays_where_it_is() {
    let place = Place::new("stays");
    let graph = place.create(&chain()).expect("the name is free");
    let mut nodes = claim(&graph);
    let mut places = Vec::new();
    for round in 0..10 {
        let mut job = nodes[0].try_wait().expect("there is room");
        let message = job.output(0, 0).expect("a message");
        message.fill(round);
        let written = message.as_ptr();
        job.messages().1.truncate(0, 0, 50).expect("it fits");
        job.complete();
        let mut job = nodes[1].try_wait().expect("a message");
        job.swap((0, 0), (1, 0)).expect("they exchange buffers");
        job.complete();
        let mut job = nodes[2].try_wait().expect("a message");
        let message = job.input(1, 0).expect("a message");
        assert_eq!((message, message.as_ptr()), (&[round; 50][..], written), "nothing was copied, also not its length");
        job.complete();
        places.push(written);
    }
    assert_eq!(places[..4].iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "buffers go round: {places:?}");
}

#[test]
fn what_is_swapped_can_be_changed_in_place() {
    let place = Place::new("in-place");
    let graph = place.create(&chain()).expect("the name is free");
    let mut nodes = claim(&graph);
    for round in 0..5 {
        send(&mut nodes[0], 0, &[round, 1, 2]);
        let mut job = nodes[1].try_wait().expect("a message");
        job.output(1, 0).expect("a message")[..2].copy_from_slice(b"no");
        job.messages().1.truncate(1, 0, 2).expect("it fits");
        job.swap((0, 0), (1, 0)).expect("they exchange buffers");
        assert_eq!(job.input(0, 0).expect("what was to go"), b"no");
        let message = job.output(1, 0).expect("what came");
        message[1] += message[0];
        job.messages().1.truncate(1, 0, 3).expect("it fits");
        job.complete();
        assert_eq!(receive(&mut nodes[2], 1), [round, 1 + round, 2]);
    }
}

#[test]
fn a_job_that_is_not_complete_has_swapped_nothing() {
    let place = Place::new("given-up");
    let graph = place.create(&chain()).expect("the name is free");
    let mut nodes = claim(&graph);
    send(&mut nodes[0], 0, b"first");
    for _ in 0..3 {
        let mut job = nodes[1].try_wait().expect("a message");
        assert_eq!(job.input(0, 0), Ok(&b"first"[..]));
        job.swap((0, 0), (1, 0)).expect("they exchange buffers");
        assert_eq!(job.input(0, 0), Ok(&b""[..]));
    }
    nodes.remove(1).release();
    let mut b = graph.claim("b").expect("it is free");
    let mut job = b.try_wait().expect("the job that was begun");
    job.swap((0, 0), (1, 0)).expect("they exchange buffers");
    job.complete();
    send(&mut nodes[0], 0, b"second");
    send(&mut nodes[0], 0, b"third");
    assert_eq!(receive(&mut nodes[1], 1), b"first");
}

/// b reads two messages and takes one away: the other is read again.
#[test]
fn only_what_a_job_takes_away_is_swapped_and_only_where_the_graph_says_so() {
    let place = Place::new("errors");
    let edges = vec![Edge { threshold: 2, ..edge(0, 1) }, edge(1, 2), edge(1, 2)];
    let spec = ringed(&["a", "b", "c"], edges, LENGTH, 4).with_swapping(&[0, 1]).expect("rings of one length");
    let graph = place.create(&spec).expect("the name is free");
    let mut nodes = claim(&graph);
    send(&mut nodes[0], 0, b"first");
    send(&mut nodes[0], 0, b"second");
    let mut job = nodes[1].try_wait().expect("two messages");
    assert_eq!(job.swap((0, 1), (1, 0)), Err(MessageError::Kept { edge: 0, number: 1, consume: 1 }));
    assert_eq!(job.swap((0, 0), (2, 0)), Err(MessageError::NotSwapping { from: 0, to: 2 }));
    assert_eq!(job.swap((1, 0), (0, 0)), Err(MessageError::NotSwapping { from: 1, to: 0 }), "the other way");
    assert_eq!(job.swap((0, 2), (1, 0)), Err(MessageError::NoMessage { edge: 0, number: 2, count: 2 }));
    assert_eq!(job.swap((0, 0), (1, 1)), Err(MessageError::NoMessage { edge: 1, number: 1, count: 1 }));
    assert_eq!((job.input(0, 0).map(<[u8]>::to_vec), job.input(0, 1)), (Ok(b"first".to_vec()), Ok(&b"second"[..])));
    job.swap((0, 0), (1, 0)).expect("they exchange buffers");
    job.complete();
    assert_eq!(nodes[2].try_wait().expect("a message").input(1, 0), Ok(&b"first"[..]));
}

#[test]
fn rings_that_exchange_buffers_are_rings_of_one_length_each_in_one_group() {
    let spec = || {
        let ring = |message| Channel::Ring { message, capacity: 2 };
        let edges = vec![edge(0, 1), edge(0, 1), edge(0, 1), edge(0, 1)];
        let channels = vec![ring(8), ring(8), ring(9), Channel::Counter];
        Spec::with_channels(graph(&["a", "b"], edges), channels).expect("it can be")
    };
    let refused = |edges: &[usize]| match spec().with_swapping(&[0]).and_then(|spec| spec.with_swapping(edges)) {
        Err(SpecError::Swapping { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&[0]), SwappingError::Twice);
    assert_eq!(refused(&[1, 1]), SwappingError::Twice);
    assert_eq!(refused(&[1, 2]), SwappingError::Length { first: 8, own: 9 });
    assert_eq!(refused(&[3]), SwappingError::NoRing);
    assert_eq!(spec().with_swapping(&[4]), Err(SpecError::NoEdge { edge: 4, edges: 4 }));
}

/// A message that a node sends to itself: it may keep the buffer for as many jobs as it likes.
#[test]
fn a_ring_may_exchange_buffers_with_itself() {
    let place = Place::new("itself");
    let spec = ringed(&["a"], vec![back(0, 0, 1)], 4, 2).with_swapping(&[0]).expect("a ring");
    let graph = place.create(&spec).expect("the name is free");
    let mut nodes = claim(&graph);
    let mut kept = None;
    for round in 0..6_u32 {
        let mut job = nodes[0].try_wait().expect("a message");
        job.swap((0, 0), (0, 0)).expect("it exchanges buffers");
        let state = job.output(0, 0).expect("what came");
        assert_eq!(
            (*kept.get_or_insert(state.as_ptr()), u32::from_le_bytes(state.try_into().expect("4"))),
            (state.as_ptr(), round)
        );
        state.copy_from_slice(&(round + 1).to_le_bytes());
        job.complete();
    }
}

/// What a node does with the messages of one job.
#[derive(Clone, Debug)]
struct Step {
    node: usize,
    /// Pairs of messages to swap, chosen among those that there are.
    swaps: Vec<(prop::sample::Index, prop::sample::Index)>,
    /// Whether the job is begun, swaps, and is given up before.
    is_repeated: bool,
}

/// Edges as queues of messages.
struct Model {
    edges: Vec<Edge>,
    queues: Vec<VecDeque<Vec<u8>>>,
    capacity: usize,
    written: u32,
}

impl Model {
    fn may_run(&self, node: usize) -> bool {
        self.edges.iter().zip(&self.queues).all(|(edge, queue)| {
            let has_tokens = edge.consumer != node || queue.len() >= edge.threshold as usize;
            let has_room = edge.producer != node || queue.len() + edge.produce as usize <= self.capacity;
            has_tokens && has_room
        })
    }

    /// The messages that a job of `node` takes away, or adds.
    fn messages(&self, node: usize, is_input: bool) -> Vec<(usize, u32)> {
        let of_edge = |(position, edge): (usize, &Edge)| {
            let (end, count) = if is_input { (edge.consumer, edge.consume) } else { (edge.producer, edge.produce) };
            (0..if end == node { count } else { 0 }).map(move |number| (position, number)).collect::<Vec<_>>()
        };
        self.edges.iter().enumerate().flat_map(of_edge).collect()
    }
}

/// Carries out a job of `node` in both, and checks all that it reads.
fn carry_out(node: &mut Node, step: &Step, model: &mut Model) {
    let (inputs, outputs) = (model.messages(step.node, true), model.messages(step.node, false));
    let swaps: Vec<_> = if inputs.is_empty() || outputs.is_empty() {
        Vec::new()
    } else {
        step.swaps
            .iter()
            .map(|(from, to)| (inputs[from.index(inputs.len())], outputs[to.index(outputs.len())]))
            .collect()
    };
    if step.is_repeated {
        let mut job = node.try_wait().expect("the model says that it may run");
        swaps.iter().for_each(|&(from, to)| job.swap(from, to).expect("they exchange buffers"));
    }
    let mut job = node.try_wait().expect("the model says that it may run");
    for (edge, queue) in model.queues.iter().enumerate().filter(|(edge, _)| model.edges[*edge].consumer == step.node) {
        for (number, message) in (0..model.edges[edge].threshold).zip(queue) {
            assert_eq!(job.input(edge, number), Ok(&message[..]), "edge {edge}, message {number}");
        }
    }
    let mut taken: Vec<Vec<u8>> =
        inputs.iter().map(|&(edge, number)| model.queues[edge][number as usize].clone()).collect();
    let mut added = Vec::new();
    for &(edge, number) in &outputs {
        model.written += 1;
        let message = model.written.to_le_bytes().repeat(1 + model.written as usize % 4);
        job.messages().1.write(edge, number, &message).expect("it fits");
        added.push(message);
    }
    for (from, to) in swaps {
        job.swap(from, to).expect("they exchange buffers");
        let place =
            |of: &[(usize, u32)], wanted| of.iter().position(|&message| message == wanted).expect("chosen of these");
        std::mem::swap(&mut taken[place(&inputs, from)], &mut added[place(&outputs, to)]);
    }
    job.complete();
    for &(edge, _) in &inputs {
        model.queues[edge].pop_front();
    }
    for ((edge, _), message) in outputs.into_iter().zip(added) {
        model.queues[edge].push_back(message);
    }
}

prop_compose! {
    fn step()(
        node in 0..4_usize,
        swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4),
        is_repeated in any::<bool>(),
    ) -> Step {
        Step { node, swaps, is_repeated }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// a fork, a join and a message back, whose jobs add and take several messages, and look at some that they leave.
    #[test]
    fn buffers_that_are_swapped_at_random_hold_what_queues_of_messages_hold(
        steps in prop::collection::vec(step(), 1..150),
        ahead in 0..3_u32,
        initial in 1..3_u32,
    ) {
        let place = Place::new("random");
        let edges = vec![
            Edge { produce: 2, consume: 1, threshold: 1 + ahead, initial, ..edge(0, 1) },
            Edge { produce: 2, consume: 2, threshold: 2, ..edge(0, 2) },
            Edge { produce: 1, consume: 2, threshold: 2 + ahead, initial, ..edge(1, 3) },
            Edge { produce: 3, consume: 3, threshold: 3, ..edge(2, 3) },
            back(3, 0, 3),
        ];
        let capacity = 6;
        let spec = ringed(&["a", "b", "c", "d"], edges.clone(), 16, capacity);
        let spec = spec.with_swapping(&[0, 1, 2, 3, 4]).expect("rings of one length");
        let graph = place.create(&spec).expect("the name is free");
        let mut nodes = claim(&graph);
        let queues = edges.iter().map(|edge| vec![vec![0; 16]; edge.initial as usize].into()).collect();
        let mut model = Model { edges, queues, capacity: capacity as usize, written: 0 };
        for step in steps {
            if model.may_run(step.node) {
                carry_out(&mut nodes[step.node], &step, &mut model);
            } else {
                prop_assert!(nodes[step.node].try_wait().is_err(), "node {} may not run", step.node);
            }
        }
    }
}
