//! Named, seeded generators of random task sets.
//!
//! A [`GeneratorSpec`] says what to draw, a seed says which one, and [`generate`] yields the same bytes for the two on
//! any machine and in any thread. A spec is written and read as one line of text, and a [`Provenance`] (the line, the
//! seed and the version of the generators) is what results should be stored with: it replays the set.
//!
//! ```
//! use laxity_gen::{GeneratorSpec, generate, task_set_seed};
//!
//! let spec: GeneratorSpec = "uni-light/moderate cap=2".parse()?;
//! let set = generate(&spec, task_set_seed(1, 2, 3))?;
//! assert!(set.total_utilization().units() <= 2 << 53);
//! assert!(set.provenance.to_string().starts_with("uni-light/moderate cap=2 seed="));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What can be drawn, and how it is written (parameters in any order after the first word):
//!
//! | Line | Source |
//! | --- | --- |
//! | `uni-light/moderate cap=2` and the other 17 of [`GeneratorSpec::edf_scenarios`] | paper 002, section 4.2 |
//! | `exp-heavy/multimedia cap=8 gpu=0.2..0.3 part=0.8 transfer=0.2 interrupts=3` | paper 000, section V |
//! | the same with `overlap=0.333` | its asynchronous I/O, see [`GpuUse`] |
//! | `uniform(0.5,0.9)/multimedia cap=6 gpu=0.5..0.6 part=0.75 transfer=0.2 interrupts=6` | paper 000, appendix D |
//! | `uunifast-discard/long n=10 total=3` | Bini & Buttazzo 2005; Davis & Burns 2011 |
//! | `randfixedsum/log-uniform(1ms,1s,1ms) n=10 total=7.5` | Stafford; Emberson, Stafford & Davis, WATERS 2010 |
//! | `dirichlet-rescale/short n=3 total=1 min=0.1 max=0.2,0.5,0.9` | Griffin, Bate & Davis, RTSS 2020 |
//! | `pair-exchange/short n=3 total=1 min=0.1 max=0.2,0.5,0.9` | a Markov chain, see [`FixedSumMethod::PairExchange`] |
//!
//! Floating point is used to draw, never to decide: every utilization is an integer number of 2^-53 before it meets a
//! cap, a period or a sum. `ln` and `pow` come from `libm`, whose results do not depend on the machine.
#![forbid(unsafe_code)]

mod error;
mod fixed_sum;
mod generate;
mod gpu;
mod klmirqd;
mod number;
mod period;
mod provenance;
mod seed;
mod spec;
mod text;
mod utilization;

pub use error::{GenerateError, ParseSpecError, SpecError};
pub use fixed_sum::{FixedSum, FixedSumMethod, PerTask};
pub use generate::{GeneratedSet, generate};
pub use gpu::{GpuUse, klmirqd_platform};
pub use klmirqd::{klmirqd_halves, klmirqd_table2};
pub use number::{Decimal, Utilization};
pub use period::{PeriodDistribution, PeriodShape};
pub use provenance::{GENERATOR_VERSION, ParseProvenanceError, Provenance};
pub use seed::{mix, task_set_seed};
pub use spec::{GeneratorSpec, TASKS_MAX, UtilizationRule};
pub use utilization::UtilizationDistribution;
