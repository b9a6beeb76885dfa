//! A GPU as the jobs of real-time tasks use it: they say what to copy and to launch, and this crate when.
//!
//! ```text
//!            begin_job          first operation              operations                  end_job, or release
//! (thread) -----------> (job) -----------------> (token) --------------------> (token) --------------------> (job)
//!                                wait for a token    for each: lock the engine, issue,
//!                                                    wait for completion, unlock
//! ```
//!
//! It does for soft GPUs what libgpui does for CUDA (paper 003, sections 5.4.2 and 5.4.3): the first operation of a job
//! takes a token of the arbitration, each operation locks the engine that it needs, long copies are done in chunks with
//! the lock taken anew for each, threads suspend while they wait, and each has a stream of its own. Without an
//! arbitration operations go straight to the soft GPU, whose engines serve them first come, first served.
//!
//! ```no_run
//! use laxity_device::{Device, DeviceOptions};
//! use laxity_gpu::{Base, Config, Registry};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let arbitration = Registry::default().create_or_attach("car", &Config::new(4, 1))?;
//! let options = DeviceOptions { arbitration: Some(arbitration), ..DeviceOptions::new("car") };
//! let device = Device::open(&options)?; // one for the process
//! let image = device.alloc(640 * 480)?;
//!
//! let mut thread = device.thread("detector", Base::Fixed(50))?; // this thread
//! for number in 0..100 {
//!     let mut job = thread.job(number, Base::Fixed(50))?;
//!     let pixels = [0; 640 * 480];
//!     job.copy_in(&image, 0, &pixels)?; // takes the token
//!     let of_kernel = image.clone();
//!     job.launch(move |view| {
//!         view.write(&of_kernel, 0..640 * 480)?.reverse();
//!         Ok(())
//!     })?;
//!     let mut result = [0; 640 * 480];
//!     job.copy_out(&image, 0, &mut result)?;
//! } // the job is over: lets go of the token
//! # Ok(())
//! # }
//! ```
//!
//! Where Laxity's scheduler schedules the threads, tokens and engines are locks of its system, and a job is suspended for
//! its policy while it waits for the GPU ([`Scheduling`], decision 105).
//!
//! The threads of the soft GPU that work for others, above all the one that handles its interrupts, are scheduled as
//! [`Service`] says: by default as urgently as the holders of tokens in this process. Decision 22 has the reasons.
#![forbid(unsafe_code)]

mod details;
mod device;
mod error;
mod operations;
mod options;
mod scheduling;
mod service;
mod thread;

pub use device::{Buffer, Device};
pub use error::DeviceError;
pub use laxity_softgpu::{DeviceView, KernelResult, Wait};
pub use options::{DeviceOptions, Service};
pub use scheduling::{HandlingRecorder, HandlingRecording, Management, Scheduled, Scheduling};
pub use thread::{DeviceThread, Job};
