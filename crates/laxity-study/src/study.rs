//! A study as what runs it sees it: scenarios, points, replicates, and a function from a chunk of them to counts.

use laxity_gen::GenerateError;

use crate::Counts;

/// A part of a study: some replicates at one point of one scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chunk {
    /// Index into [`Study::scenarios`].
    pub scenario: u32,
    /// Cap on the total utilization of a task set, in thousandths of a CPU: one of [`Study::points`].
    pub point: u64,
    /// The first replicate.
    pub first: u64,
    /// How many replicates.
    pub count: u64,
}

/// One line of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// Which graph of a scenario it belongs to, such as `hard` or `R=4`.
    pub graph: String,
    /// Its name in the legend.
    pub name: String,
}

/// Why a chunk could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StudyError {
    /// There is no scenario of this index.
    #[error("scenario {scenario} does not exist; the study has {scenarios}, counted from 0")]
    Scenario {
        /// The index given.
        scenario: u32,
        /// How many there are.
        scenarios: usize,
    },
    /// A task set could not be drawn.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// No task set drawn has the utilization asked for.
    #[error(
        "none of {attempts} task sets has a utilization of {point} thousandths of a CPU or up to 100 below; the \
     paper's are 7500 to 11500"
    )]
    NoTaskSet {
        /// That utilization, in thousandths of a CPU.
        point: u64,
        /// How many were drawn.
        attempts: u64,
    },
    /// The simulator refuses a workload; its reasons.
    #[error("{0}")]
    Refused(String),
}

/// A published schedulability study.
///
/// The seed of a task set depends on the study, the scenario, the point and the replicate alone, and all curves see
/// the same task sets; so the sum of the counts does not depend on how the work was split.
pub trait Study: Sync {
    /// The name of its folder: author, year, subject.
    fn name(&self) -> &'static str;

    /// Everything that can change its numbers, as one line to be stored with them.
    fn options(&self) -> String;

    /// The names of its scenarios. Their order is part of the results.
    fn scenarios(&self) -> Vec<String>;

    /// The lines drawn for every scenario. Their order is part of the results.
    fn curves(&self) -> Vec<Curve>;

    /// The points of a full run, in thousandths of a CPU.
    fn points(&self) -> Vec<u64>;

    /// Replicates at each point of a full run.
    fn replicates(&self) -> u64;

    /// Draws and judges the task sets of a chunk.
    ///
    /// # Errors
    /// If there is no such scenario, or no task set can be drawn at this point.
    fn evaluate(&self, chunk: &Chunk) -> Result<Counts, StudyError>;
}
