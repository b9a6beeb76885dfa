//! Those who carry out the nodes of a run: threads of this process, or a process for each node.

use laxity_model::Instant;

/// Those who carry out the nodes of a run.
pub trait Crew {
    /// Lets all begin; each has its node.
    fn begin(&mut self, start: Instant);

    /// Looks after them, and answers whether anyone is still at work. What happened is told to `tell`.
    fn look_after(&mut self, tell: &mut dyn FnMut(String)) -> bool;

    /// Ends all of them, whatever they are doing.
    fn stop(&mut self);

    /// For each node how often it was lost in the middle of the run.
    fn losses(&self) -> &[u64];

    /// Whether a node was lost for good, and the graph therefore ended.
    fn is_broken(&self) -> bool;
}
