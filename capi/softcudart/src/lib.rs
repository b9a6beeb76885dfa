//! A runtime for CUDA programs whose compiler linked them to a shared one: a `libcudart.so.13` of our own, over the
//! driver's interface.
//!
//! ```text
//!   program of nvcc -cudart shared --> cuda*, __cuda* --> export: an entry point each
//!                                                            |  errors: the thread's last one
//!                                                            |  binaries: kernels by the address of their host function
//!                                                            v
//!                          cuGetProcAddress of libcuda.so.1: the soft driver, or any other
//! ```
//!
//! The vendor's own runtime checks by a key that its driver is the vendor's, and refuses the soft one. This one reaches its
//! driver as the vendor's does, so that what stands between programs and their driver sees the same calls. It uses the
//! device's primary context, as CUDA's documentation says. Entry points that are not carried out return
//! `cudaErrorNotSupported`, and are named once on standard error.

mod binaries;
mod devices;
mod driver;
mod errors;
mod export;
mod properties;
mod types;
