//! Types and constants of CUDA's runtime interface that this runtime needs, as `driver_types.h` of CUDA 13.5 has them.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `cudaError_t`. Errors of the driver have the same numbers.
pub type cudaError = c_int;

/// A handle of any kind.
pub type Handle = *mut c_void;
pub type Stream = Handle;
pub type Event = Handle;
pub type Kernel = Handle;
pub type Name = *const c_char;

/// What a call answers inside.
pub type Outcome<T = ()> = Result<T, cudaError>;

pub type HostFunction = Option<unsafe extern "C" fn(*mut c_void)>;
pub type StreamCallback = Option<unsafe extern "C" fn(Stream, cudaError, *mut c_void)>;

pub const SUCCESS: cudaError = 0;
pub const INVALID_VALUE: cudaError = 1;
pub const INVALID_CONFIGURATION: cudaError = 9;
pub const INVALID_MEMCPY_DIRECTION: cudaError = 21;
pub const INSUFFICIENT_DRIVER: cudaError = 35;
pub const MISSING_CONFIGURATION: cudaError = 52;
pub const INVALID_DEVICE_FUNCTION: cudaError = 98;
pub const INVALID_DEVICE: cudaError = 101;
pub const SYMBOL_NOT_FOUND: cudaError = 500;
pub const CONTEXT_IS_DESTROYED: cudaError = 709;
pub const NOT_SUPPORTED: cudaError = 801;
pub const UNKNOWN: cudaError = 999;

/// The stream of the calling thread.
pub const STREAM_PER_THREAD: usize = 2;

/// `cudaMemcpyKind`: `cudaMemcpyDefault` (4) has the driver see which memory each end is.
pub const HOST_TO_HOST: c_int = 0;
pub const HOST_TO_DEVICE: c_int = 1;
pub const DEVICE_TO_HOST: c_int = 2;
pub const DEVICE_TO_DEVICE: c_int = 3;
pub const BY_ADDRESS: c_int = 4;

/// `CUmemorytype`.
pub const MEMORY_HOST: c_uint = 1;
pub const MEMORY_DEVICE: c_uint = 2;
pub const MEMORY_UNIFIED: c_uint = 4;

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dim3 {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

/// `cudaLaunchConfig_t`.
#[repr(C)]
pub struct LaunchConfig {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared_bytes: usize,
    pub stream: Stream,
    pub attributes: *mut c_void,
    pub attribute_count: c_uint,
}

/// `CUlaunchConfig`. Attributes are those of the runtime's.
#[repr(C)]
pub struct DriverLaunchConfig {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared_bytes: c_uint,
    pub stream: Stream,
    pub attributes: *mut c_void,
    pub attribute_count: c_uint,
}

/// `cudaPointerAttributes`.
#[repr(C)]
#[derive(Default)]
pub struct PointerAttributes {
    pub kind: c_int,
    pub device: c_int,
    pub device_pointer: usize,
    pub host_pointer: usize,
    pub unused: usize,
    pub reserved: [usize; 7],
}

/// One end of a `CUDA_MEMCPY2D`.
#[repr(C)]
pub struct CopyEnd {
    pub x: usize,
    pub y: usize,
    pub kind: c_uint,
    pub host: usize,
    pub device: usize,
    pub array: usize,
    pub pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
pub struct Copy2D {
    pub source: CopyEnd,
    pub target: CopyEnd,
    pub width: usize,
    pub height: usize,
}

/// `cudaChannelFormatDesc`.
#[repr(C)]
pub struct ChannelFormat {
    pub bits: [c_int; 4],
    pub kind: c_int,
}

/// What 0 means where a stream is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default0 {
    /// The stream that all threads share.
    Legacy,
    PerThread,
}

impl Default0 {
    /// The stream as the driver is to be told.
    pub fn stream(self, stream: Stream) -> Stream {
        if stream.is_null() && self == Default0::PerThread { STREAM_PER_THREAD as Stream } else { stream }
    }
}
