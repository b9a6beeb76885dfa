//! What can be wrong with a generator, in words.

use laxity_model::Nanos;

use crate::{Decimal, FixedSumMethod, TASKS_MAX};

/// Parameters no task set can be drawn from. Found by [`GeneratorSpec::validate`](crate::GeneratorSpec::validate).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Periods cannot lie in this range.
    #[error(
        "periods from {min} to {max}: the shortest must be above 0 and not above the longest, and the longest \
         at most 10 years"
    )]
    PeriodRange {
        /// Shortest period asked for.
        min: Nanos,
        /// Longest period asked for.
        max: Nanos,
    },
    /// The ends of the range of periods are not multiples of the granularity.
    #[error(
        "periods from {min} to {max}: both must be multiples of the granularity {granularity}, which must be \
         above 0"
    )]
    PeriodGranularity {
        /// Shortest period asked for.
        min: Nanos,
        /// Longest period asked for.
        max: Nanos,
        /// What they should be multiples of.
        granularity: Nanos,
    },
    /// Utilizations of single tasks cannot lie in this range.
    #[error(
        "task utilizations from {min} to {max}: the smallest must be above 0 and below the largest, and the \
         largest at most 1"
    )]
    UtilizationRange {
        /// Smallest utilization asked for.
        min: Decimal,
        /// Largest utilization asked for.
        max: Decimal,
    },
    /// More than nine ninths.
    #[error("{light_ninths} ninths of light tasks: at most 9 ninths make a whole")]
    BimodalShare {
        /// Ninths of light tasks asked for.
        light_ninths: u8,
    },
    /// The mean of an exponential distribution is out of range.
    #[error("exponential utilizations of mean {mean}: the mean must be above 0 and at most 1")]
    ExponentialMean {
        /// Mean asked for.
        mean: Decimal,
    },
    /// A cap under which a set may be empty, or above what is supported.
    #[error(
        "cap {cap} on total utilization: below {largest}, the largest utilization of one task, a set could be \
         empty, and above {} none is drawn; choose a cap between the two",
        crate::spec::CAP_MAX
    )]
    Cap {
        /// Cap asked for.
        cap: Decimal,
        /// The largest utilization a single task may have.
        largest: Decimal,
    },
    /// No task, or too many.
    #[error("{tasks} tasks: this method draws between 1 and {limit}")]
    TaskCount {
        /// Number of tasks asked for.
        tasks: usize,
        /// The most this method draws.
        limit: usize,
    },
    /// A list of bounds that has not one entry a task.
    #[error("{given} utilization bounds for {tasks} tasks: give one for each task, or one for all")]
    BoundCount {
        /// Entries given.
        given: usize,
        /// Number of tasks.
        tasks: usize,
    },
    /// Bounds of a task's utilization that contradict each other, or exceed one CPU.
    #[error(
        "task {task}: utilization between {min} and {max} is impossible; the smallest must not exceed the \
         largest, nor the largest 1"
    )]
    Bounds {
        /// Which task, from 0.
        task: usize,
        /// Smallest utilization asked for.
        min: Decimal,
        /// Largest utilization asked for.
        max: Decimal,
    },
    /// The total lies outside what the bounds allow.
    #[error(
        "total utilization {total} of {tasks} tasks: their bounds admit {min} to {max}; change the total, the \
         number of tasks or the bounds"
    )]
    Total {
        /// Total utilization asked for.
        total: Decimal,
        /// Number of tasks.
        tasks: usize,
        /// Sum of the smallest utilizations.
        min: Decimal,
        /// Sum of the largest utilizations.
        max: Decimal,
    },
    /// A method that cannot keep the bounds given.
    #[error("{}", unsupported_bounds(.method))]
    BoundsUnsupported {
        /// The method asked for.
        method: FixedSumMethod,
    },
    /// Not a share of the tasks, or of a task.
    #[error("{parameter} from {min} to {max}: a share lies between 0 and 1, the smaller first")]
    Share {
        /// Which parameter.
        parameter: &'static str,
        /// Smallest share asked for.
        min: Decimal,
        /// Largest share asked for.
        max: Decimal,
    },
    /// More interrupts of one job than any GPU raises.
    #[error("{interrupts} interrupts a GPU job: at most {} are supported", crate::gpu::INTERRUPTS_MAX)]
    Interrupts {
        /// Interrupts asked for.
        interrupts: u32,
    },
}

/// Text that is no generator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseSpecError {
    /// The first word is not `UTILIZATION/PERIODS`.
    #[error(
        "`{text}` is no generator: write utilizations, a slash, periods and then parameters, as in \
         `uni-light/moderate cap=2` or `randfixedsum/short n=10 total=3.5`"
    )]
    NoSlash {
        /// What stood there.
        text: String,
    },
    /// Not a distribution of utilizations or method that is known.
    #[error(
        "unknown utilizations `{text}`: write uni-, bimo- or exp- followed by light, medium or heavy; \
         uniform(MIN,MAX); exponential(MEAN); uunifast-discard, randfixedsum, dirichlet-rescale or pair-exchange"
    )]
    Utilizations {
        /// What stood there.
        text: String,
    },
    /// Not a distribution of periods that is known.
    #[error(
        "unknown periods `{text}`: write short, moderate, long, multimedia, or uniform(MIN,MAX,STEP) or \
         log-uniform(MIN,MAX,STEP) with spans such as 5ms"
    )]
    Periods {
        /// What stood there.
        text: String,
    },
    /// Not a decimal number.
    #[error("`{text}` is no number: write digits with at most nine decimals, as in 0.25")]
    Number {
        /// What stood there.
        text: String,
    },
    /// Not a span of time.
    #[error("`{text}` is no span of time: write a number and ns, us, ms or s, as in 2.5ms")]
    Span {
        /// What stood there.
        text: String,
    },
    /// A parameter that the generator does not have, that stands twice, or that is not `key=value`.
    #[error("unknown, repeated or unfinished parameter `{text}`: each of {known} may be given once, as KEY=VALUE")]
    Parameter {
        /// What stood there.
        text: String,
        /// What may stand there.
        known: &'static str,
    },
    /// A parameter that must be given.
    #[error("parameter {parameter} is missing: add {parameter}=VALUE")]
    Missing {
        /// Which one.
        parameter: &'static str,
    },
    /// Well written, but nothing can be drawn from it.
    #[error(transparent)]
    Invalid(#[from] SpecError),
}

/// A task set that could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// The parameters admit no task set. Change them.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// More tasks fit under the cap than are supported. Another seed may do, larger utilizations will.
    #[error("more than {TASKS_MAX} tasks fit under the cap {cap}; lower the cap or raise the utilizations of tasks", TASKS_MAX = TASKS_MAX)]
    TooManyTasks {
        /// Cap asked for.
        cap: Decimal,
    },
    /// A method that discards draws found none to keep. Another seed is unlikely to help; another method does.
    #[error(
        "{method} kept none of {attempts} draws of {tasks} tasks with total utilization {total}; use \
         randfixedsum or pair-exchange, which discard nothing"
    )]
    Hopeless {
        /// The method.
        method: FixedSumMethod,
        /// Draws discarded.
        attempts: u32,
        /// Number of tasks.
        tasks: usize,
        /// Total utilization asked for.
        total: Decimal,
    },
}

fn unsupported_bounds(method: &FixedSumMethod) -> String {
    match method {
        FixedSumMethod::UUniFastDiscard => {
            "uunifast-discard draws utilizations from 0 to 1 only; use randfixedsum for other bounds".to_owned()
        }
        method => format!(
            "{method} needs the same utilization bounds for every task; use dirichlet-rescale or pair-exchange for bounds \
             of each task"
        ),
    }
}
