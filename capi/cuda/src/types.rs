//! Types and constants of CUDA's driver interface, as `cuda.h` of CUDA 13.5 has them.
#![allow(non_camel_case_types)]

use std::ffi::{c_int, c_void};

pub type CUresult = c_int;

/// An argument that is passed on: an integer, a pointer or a handle, which calling conventions pass alike.
pub type Word = usize;
/// Handles.
pub type CUstream = *mut c_void;
pub type CUevent = *mut c_void;
pub type CUcontext = *mut c_void;

pub const SUCCESS: CUresult = 0;
pub const NOT_READY: CUresult = 600;
/// A driver that does not have what it is asked for.
pub const NOT_FOUND: CUresult = 500;

/// The stream that all threads of a context share, and that of the calling thread.
pub const STREAM_LEGACY: usize = 1;
pub const STREAM_PER_THREAD: usize = 2;
pub const STREAM_NON_BLOCKING: u32 = 1;

pub const CTX_SCHED_MASK: u32 = 7;
pub const CTX_SCHED_BLOCKING_SYNC: u32 = 4;
pub const EVENT_BLOCKING_SYNC: u32 = 1;
pub const EVENT_DISABLE_TIMING: u32 = 2;

/// Of devices: whether the memory is the host's, and how many copy engines it has.
pub const ATTRIBUTE_INTEGRATED: c_int = 18;
pub const ATTRIBUTE_ASYNC_ENGINES: c_int = 40;

/// Of pointers: what memory it is.
pub const POINTER_MEMORY_TYPE: c_int = 2;
pub const MEMORY_HOST: u32 = 1;
pub const MEMORY_DEVICE: u32 = 2;

/// Which stream a call means by 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default0 {
    Legacy,
    PerThread,
}
