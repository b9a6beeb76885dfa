//! Types and constants of CUDA's driver interface that this driver needs, as `cuda.h` of CUDA 13.5 has them.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_uint, c_void};

pub type CUresult = c_int;
pub type CUdevice = c_int;
pub type CUdeviceptr = u64;

/// A handle of any kind: a program looks into none.
pub type Handle = *mut c_void;
pub type CUcontext = Handle;
pub type CUstream = Handle;
pub type CUevent = Handle;
pub type CUmodule = Handle;
pub type CUfunction = Handle;
pub type CUgraph = Handle;
pub type CUgraphExec = Handle;
pub type CUgraphNode = Handle;

/// What a call answers inside.
pub type Outcome<T = ()> = Result<T, CUresult>;

pub type HostFunction = Option<unsafe extern "C" fn(*mut c_void)>;
pub type StreamCallback = Option<unsafe extern "C" fn(CUstream, CUresult, *mut c_void)>;
pub type Name = *const c_char;

pub const SUCCESS: CUresult = 0;
pub const INVALID_VALUE: CUresult = 1;
pub const OUT_OF_MEMORY: CUresult = 2;
pub const NOT_INITIALIZED: CUresult = 3;
pub const DEVICE_UNAVAILABLE: CUresult = 46;
pub const NO_DEVICE: CUresult = 100;
pub const INVALID_DEVICE: CUresult = 101;
pub const INVALID_IMAGE: CUresult = 200;
pub const INVALID_CONTEXT: CUresult = 201;
pub const FILE_NOT_FOUND: CUresult = 301;
pub const INVALID_HANDLE: CUresult = 400;
pub const ILLEGAL_STATE: CUresult = 401;
pub const NOT_FOUND: CUresult = 500;
pub const NOT_READY: CUresult = 600;
pub const PEER_ACCESS_ALREADY_ENABLED: CUresult = 704;
pub const PEER_ACCESS_NOT_ENABLED: CUresult = 705;
pub const CONTEXT_IS_DESTROYED: CUresult = 709;
pub const HOST_MEMORY_ALREADY_REGISTERED: CUresult = 712;
pub const HOST_MEMORY_NOT_REGISTERED: CUresult = 713;
pub const LAUNCH_FAILED: CUresult = 719;
pub const NOT_PERMITTED: CUresult = 800;
pub const NOT_SUPPORTED: CUresult = 801;
pub const STREAM_CAPTURE_UNSUPPORTED: CUresult = 900;
pub const STREAM_CAPTURE_MERGE: CUresult = 902;
pub const STREAM_CAPTURE_UNMATCHED: CUresult = 903;
pub const STREAM_CAPTURE_UNJOINED: CUresult = 904;
pub const STREAM_CAPTURE_IMPLICIT: CUresult = 906;
pub const CAPTURED_EVENT: CUresult = 907;
pub const STREAM_CAPTURE_WRONG_THREAD: CUresult = 908;
pub const UNKNOWN: CUresult = 999;

/// The stream that all threads of a context share.
pub const STREAM_LEGACY: usize = 1;
/// The stream of the calling thread.
pub const STREAM_PER_THREAD: usize = 2;

pub const STREAM_NON_BLOCKING: c_uint = 1;
pub const EVENT_DISABLE_TIMING: c_uint = 2;
pub const EVENT_FLAGS: c_uint = 7;
pub const CTX_SCHED_MASK: c_uint = 7;
pub const CTX_FLAGS: c_uint = 0xff;

pub const MEMORY_HOST: c_uint = 1;
pub const MEMORY_DEVICE: c_uint = 2;
pub const MEMORY_UNIFIED: c_uint = 4;

/// `CUDA_MEMCPY3D_v2`; `CUDA_MEMCPY2D_v2` is converted to it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Copy3D {
    pub source: CopyEnd,
    pub target: CopyEnd,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// One end of a copy in three dimensions.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CopyEnd {
    pub x: usize,
    pub y: usize,
    pub z: usize,
    pub level: usize,
    pub kind: c_uint,
    pub host: *mut c_void,
    pub device: CUdeviceptr,
    pub array: Handle,
    pub context: Handle,
    pub pitch: usize,
    pub height: usize,
}

/// One end of a copy in two dimensions.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CopyEnd2D {
    pub x: usize,
    pub y: usize,
    pub kind: c_uint,
    pub host: *mut c_void,
    pub device: CUdeviceptr,
    pub array: Handle,
    pub pitch: usize,
}

/// `CUDA_MEMCPY2D_v2`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Copy2D {
    pub source: CopyEnd2D,
    pub target: CopyEnd2D,
    pub width: usize,
    pub height: usize,
}

/// `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared_bytes: c_uint,
    pub stream: CUstream,
    pub attributes: *const c_void,
    pub attribute_count: c_uint,
}

/// `CUuuid`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Uuid(pub [u8; 16]);
