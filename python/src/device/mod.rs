//! What `laxity.gpu.Device` is made of: soft GPUs, whose kernels are callables of Python.
//!
//! ```text
//! Python   gpu.Device - alloc -> gpu.Buffer      vx.Gpu: copies and launches of a job
//! here     open                  open            kernel, and vx/gpu
//!          server: the soft GPU's server, as a program of Python's
//! crates   laxity-device, laxity-softgpu
//! ```

mod errors;
mod kernel;
mod open;
mod server;

pub use errors::device_error;
pub use kernel::Kernel;
pub use open::{PyBuffer, PyDevice};
pub use server::_serve_soft_gpu;
