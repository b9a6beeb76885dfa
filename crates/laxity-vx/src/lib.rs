//! Vision graphs in OpenVX's terms, executed as sets of sporadic tasks: a worker of `laxity-runtime` a node, pipelined
//! (paper 003, sections 5.3 and 5.4). Decision 23 has the reasons.
//!
//! ```text
//! Context -- graph --> Graph -- object, delay, node, input, output --> verify --> Verified -- spawn --> Run
//! ```
//!
//! ```
//! use laxity_model::Nanos;
//! use laxity_vx::{Action, Bytes, Context, Parameter, SpawnOptions, Value};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut graph = Context::new().graph(&format!("example-{}", std::process::id()));
//! let image = graph.object("image", Bytes(640 * 480));
//! let brightness = graph.delay("brightness", Value::<u64>::new(), 2); // this frame's, and the one before
//!
//! graph.input([Parameter::output(image)], move |job| {
//!     let shade = job.index() as u8;
//!     job.write(image)?.fill(shade);
//!     Ok(Action::Continue)
//! });
//! graph.node("measure", [Parameter::input(image), Parameter::output(brightness)], move |job| {
//!     let (inputs, mut outputs) = job.objects();
//!     *outputs.write(brightness)? = inputs.read(image)?.iter().map(|&pixel| u64::from(pixel)).sum();
//!     Ok(())
//! });
//! graph.output([Parameter::input(brightness), Parameter::input(brightness.ago(1))], move |job| {
//!     let change = job.read(brightness)? - job.read(brightness.ago(1))?;
//!     assert_eq!(change, if job.index() == 0 { 0 } else { 640 * 480 });
//!     Ok(())
//! });
//!
//! let graph = graph.verify()?;
//! let mut run = graph.spawn(&SpawnOptions { frames: Some(20), ..SpawnOptions::every(Nanos::from_millis(1)) })?;
//! assert_eq!(run.wait()?.completed, 20);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod body;
mod context;
mod details;
mod error;
mod exemplar;
mod format;
mod frames;
mod gpu;
mod graph;
mod job;
mod node_task;
mod object;
mod options;
mod parameter;
mod run;
mod scheduling;
mod shared;
mod spawn;
mod status;
mod trace;
mod verified;
mod verify;

pub use context::Context;
pub use error::{Failure, FailureReason, SpawnError};
pub use exemplar::{Array, ArrayMut, Bytes, Exemplar, Image, ImageMut, ImageRef, Matrix, MatrixMut, MatrixRef, Value};
pub use format::{ARRAY_ITEMS, Format, Item, PixelFormat};
pub use frames::{Frame, FrameTimes};
pub use gpu::TakenGpu;
pub use graph::{Action, Graph, INPUT_CALLBACK, KernelError, Node, OUTPUT_CALLBACK};
pub use job::{Inputs, Job, JobError, Outputs};
pub use object::{Delay, Object, Readable, Slot, Writable};
pub use options::{Budgets, Policy, SpawnOptions};
pub use parameter::Parameter;
pub use run::{Run, RunHandle};
pub use status::Status;
pub use verified::{Dependency, DependencyKind, Verified};
pub use verify::VerifyError;
