//! One GPU: an execution engine and one or two copy engines, each FIFO and non-preemptive, fed by streams.

use std::collections::VecDeque;

use laxity_model::{CopyDirection, Engine, Nanos};

/// An operation issued to the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<O> {
    /// Whose operation it is: operations of a stream run one after the other, in the order of issue.
    pub stream: u32,
    /// What runs it.
    pub engine: Engine,
    /// How long.
    pub duration: Nanos,
    /// What the caller knows it by.
    pub what: O,
}

/// What the driver of the state machine must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<O> {
    /// The engine is busy with `what` from now on and for `duration`; then say [`Engines::complete`].
    Begin {
        /// The engine.
        engine: Engine,
        /// The operation.
        what: O,
        /// How long.
        duration: Nanos,
    },
}

/// The engines of one GPU.
///
/// An operation is *eligible* when it is issued and its predecessor in its stream is complete; an engine serves
/// eligible operations in the order in which they became so. (GPUs of paper 000's time had one hardware queue, in
/// which an operation that was not eligible held up those behind it; later ones have a queue a stream.)
#[derive(Clone, Debug)]
pub struct Engines<O> {
    copy_engines: u8,
    /// What each engine does; indexed by [`Engine::index`].
    busy: [Option<Operation<O>>; Engine::ALL.len()],
    eligible: [VecDeque<Operation<O>>; Engine::ALL.len()],
    /// Per stream with operations: those that wait for their predecessor.
    streams: Vec<Stream<O>>,
}

#[derive(Clone, Debug)]
struct Stream<O> {
    stream: u32,
    waiting: VecDeque<Operation<O>>,
}

impl<O: Copy> Engines<O> {
    /// An idle GPU with 1 or 2 copy engines.
    pub fn new(copy_engines: u8) -> Self {
        assert!((1..=2).contains(&copy_engines), "a GPU has one or two copy engines");
        Engines { copy_engines, busy: [None; 3], eligible: Default::default(), streams: Vec::new() }
    }

    /// The engine that copies in `direction`: with one copy engine both directions share it.
    pub fn copy_engine(&self, direction: CopyDirection) -> Engine {
        copy_engine(self.copy_engines, direction)
    }

    /// What `engine` does.
    pub fn busy(&self, engine: Engine) -> Option<&O> {
        self.busy[engine.index()].as_ref().map(|operation| &operation.what)
    }

    /// `operation` is issued.
    pub fn issue(&mut self, operation: Operation<O>, actions: &mut Vec<Action<O>>) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.stream == operation.stream) {
            stream.waiting.push_back(operation);
            return;
        }
        self.streams.push(Stream { stream: operation.stream, waiting: VecDeque::new() });
        self.admit(operation, actions);
    }

    /// The operation on `engine` is complete and returned.
    pub fn complete(&mut self, engine: Engine, actions: &mut Vec<Action<O>>) -> O {
        let done = self.busy[engine.index()].take().expect("only a busy engine completes an operation");
        let at = self.streams.iter().position(|stream| stream.stream == done.stream);
        let at = at.expect("a stream lasts as long as its operations");
        // First the operation that waits for the engine, then the stream's next: that became eligible only now.
        self.start(engine, actions);
        match self.streams[at].waiting.pop_front() {
            Some(next) => self.admit(next, actions),
            None => {
                self.streams.swap_remove(at);
            }
        }
        done.what
    }

    fn admit(&mut self, operation: Operation<O>, actions: &mut Vec<Action<O>>) {
        self.eligible[operation.engine.index()].push_back(operation);
        self.start(operation.engine, actions);
    }

    fn start(&mut self, engine: Engine, actions: &mut Vec<Action<O>>) {
        let slot = engine.index();
        if self.busy[slot].is_some() {
            return;
        }
        if let Some(operation) = self.eligible[slot].pop_front() {
            self.busy[slot] = Some(operation);
            actions.push(Action::Begin { engine, what: operation.what, duration: operation.duration });
        }
    }
}

/// The engine that copies in `direction` on a GPU with that many copy engines.
pub fn copy_engine(copy_engines: u8, direction: CopyDirection) -> Engine {
    match (copy_engines, direction) {
        (2, CopyDirection::Out) => Engine::Copy(1),
        _ => Engine::Copy(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(stream: u32, engine: Engine, what: char) -> Operation<char> {
        Operation { stream, engine, duration: Nanos(1), what }
    }

    fn begun(actions: &mut Vec<Action<char>>) -> String {
        actions.drain(..).map(|Action::Begin { what, .. }| what).collect()
    }

    /// ```text
    ///   EE    aaaa cc         a, b, c issued in this order, b needs the copy engine; a and b are of one stream
    ///   CE0       bbbb
    /// ```
    #[test]
    fn a_stream_is_in_order_and_streams_overlap() {
        let (mut gpu, mut actions) = (Engines::new(1), Vec::new());
        gpu.issue(operation(1, Engine::Execution, 'a'), &mut actions);
        gpu.issue(operation(1, Engine::Copy(0), 'b'), &mut actions);
        gpu.issue(operation(2, Engine::Execution, 'c'), &mut actions);
        assert_eq!(begun(&mut actions), "a", "b waits for its stream, c for the engine");
        assert_eq!(gpu.complete(Engine::Execution, &mut actions), 'a');
        assert_eq!(begun(&mut actions), "cb", "both engines work");
        assert_eq!(gpu.busy(Engine::Copy(0)), Some(&'b'));
    }

    #[test]
    fn an_engine_is_first_come_first_served_and_never_preempted() {
        let (mut gpu, mut actions) = (Engines::new(2), Vec::new());
        for (stream, what) in [(1, 'a'), (2, 'b'), (3, 'c')] {
            gpu.issue(operation(stream, Engine::Copy(1), what), &mut actions);
        }
        let mut order = begun(&mut actions);
        for _ in 0..3 {
            gpu.complete(Engine::Copy(1), &mut actions);
            order.push_str(&begun(&mut actions));
        }
        assert_eq!(order, "abc");
    }

    #[test]
    fn directions_share_the_only_copy_engine_and_have_one_each_of_two() {
        let engines = |count| [CopyDirection::In, CopyDirection::Out].map(|way| copy_engine(count, way));
        assert_eq!(engines(1), [Engine::Copy(0), Engine::Copy(0)]);
        assert_eq!(engines(2), [Engine::Copy(0), Engine::Copy(1)]);
    }
}
