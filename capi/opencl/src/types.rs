//! The types and constants of OpenCL that the layer needs, as `CL/cl.h` and `CL/cl_ext.h` have them.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_void};

pub type cl_int = i32;
pub type cl_uint = u32;
pub type cl_bool = u32;
pub type cl_bitfield = u64;

/// A handle of any kind: the layer looks into none.
pub type Handle = *mut c_void;
pub type cl_command_queue = Handle;
pub type cl_context = Handle;
pub type cl_device_id = Handle;
pub type cl_event = Handle;
pub type cl_kernel = Handle;
pub type cl_mem = Handle;
pub type cl_platform_id = Handle;

/// What a driver calls when an event is complete.
pub type EventCallback = unsafe extern "C" fn(event: cl_event, status: cl_int, data: *mut c_void);
/// A native kernel.
pub type NativeKernel = Option<unsafe extern "C" fn(*mut c_void)>;
/// What frees shared virtual memory.
pub type FreeCallback = Option<unsafe extern "C" fn(cl_command_queue, cl_uint, *mut *mut c_void, *mut c_void)>;
/// The names of functions.
pub type Name = *const c_char;

pub const CL_SUCCESS: cl_int = 0;
pub const CL_OUT_OF_RESOURCES: cl_int = -5;
pub const CL_INVALID_VALUE: cl_int = -30;
pub const CL_INVALID_CONTEXT: cl_int = -34;
pub const CL_INVALID_EVENT_WAIT_LIST: cl_int = -57;
pub const CL_INVALID_PROPERTY: cl_int = -64;
pub const CL_TRUE: cl_bool = 1;
pub const CL_FALSE: cl_bool = 0;
pub const CL_COMPLETE: cl_int = 0;

pub const CL_PLATFORM_NAME: cl_uint = 0x0902;
pub const CL_DEVICE_TYPE: cl_uint = 0x1000;
pub const CL_DEVICE_PLATFORM: cl_uint = 0x1031;
pub const CL_DEVICE_TYPE_CPU: cl_bitfield = 1 << 1;
pub const CL_DEVICE_HOST_UNIFIED_MEMORY: cl_uint = 0x1035;
pub const CL_QUEUE_CONTEXT: cl_uint = 0x1090;
pub const CL_QUEUE_DEVICE: cl_uint = 0x1091;
pub const CL_QUEUE_PROPERTIES: cl_uint = 0x1093;
pub const CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE: cl_bitfield = 1 << 0;
pub const CL_QUEUE_ON_DEVICE: cl_bitfield = 1 << 2;
pub const CL_MEM_SIZE: cl_uint = 0x1102;
pub const CL_EVENT_COMMAND_QUEUE: cl_uint = 0x11D0;
pub const CL_EVENT_COMMAND_EXECUTION_STATUS: cl_uint = 0x11D3;
pub const CL_KERNEL_FUNCTION_NAME: cl_uint = 0x1190;
pub const CL_MIGRATE_MEM_OBJECT_HOST: cl_bitfield = 1 << 0;

pub const CL_LAYER_API_VERSION: cl_uint = 0x4240;
pub const CL_LAYER_NAME: cl_uint = 0x4241;
pub const CL_LAYER_API_VERSION_100: cl_uint = 100;
