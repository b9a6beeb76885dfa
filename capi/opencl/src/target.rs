//! The driver, or the layer below: the entry points that this layer calls.
#![allow(non_snake_case)]

use std::ffi::c_void;

use crate::table;
use crate::types::*;

/// Declares the entry points that the layer calls, each by its place in the table.
macro_rules! target {
    ($($name:ident($($type:ty),* $(,)?) -> $result:ty;)*) => {
        /// Entry points below; `None` where there is none.
        pub struct Target {
            $(pub $name: Option<unsafe extern "C" fn($($type),*) -> $result>,)*
            /// Where they are.
            entries: Vec<usize>,
        }

        impl Target {
            /// Reads a loader's table.
            ///
            /// # Safety
            /// Each entry is null, or a function of the type that `cl_icd_dispatch` gives the name in
            /// [`table::NAMES`] at its place.
            pub unsafe fn of(entries: &[*const c_void]) -> Target {
                let entry = |name| entries.get(table::index(name)).copied().unwrap_or(std::ptr::null());
                Target {
                    entries: entries.iter().map(|&entry| entry as usize).filter(|&entry| entry != 0).collect(),
                    $(
                        // SAFETY: a null pointer is `None`, and others have this type, as the caller promises.
                        $name: unsafe {
                            std::mem::transmute::<*const c_void, Option<unsafe extern "C" fn($($type),*) -> $result>>(
                                entry(stringify!($name)),
                            )
                        },
                    )*
                }
            }
        }
    };
}

type Size = usize;
type Sizes = *const usize;
type Data = *const c_void;
type Memory = *mut c_void;
type Events = *const cl_event;
type Event = *mut cl_event;
type Queue = cl_command_queue;

target! {
    clGetPlatformInfo(cl_platform_id, cl_uint, Size, Memory, *mut Size) -> cl_int;
    clGetDeviceInfo(cl_device_id, cl_uint, Size, Memory, *mut Size) -> cl_int;
    clGetCommandQueueInfo(Queue, cl_uint, Size, Memory, *mut Size) -> cl_int;
    clCreateCommandQueue(cl_context, cl_device_id, cl_bitfield, *mut cl_int) -> Queue;
    clCreateCommandQueueWithProperties(cl_context, cl_device_id, *const cl_bitfield, *mut cl_int) -> Queue;
    clRetainCommandQueue(Queue) -> cl_int;
    clReleaseCommandQueue(Queue) -> cl_int;
    clGetKernelInfo(cl_kernel, cl_uint, Size, Memory, *mut Size) -> cl_int;
    clWaitForEvents(cl_uint, Events) -> cl_int;
    clGetMemObjectInfo(cl_mem, cl_uint, Size, Memory, *mut Size) -> cl_int;
    clGetEventInfo(cl_event, cl_uint, Size, Memory, *mut Size) -> cl_int;
    clRetainEvent(cl_event) -> cl_int;
    clReleaseEvent(cl_event) -> cl_int;
    clCreateUserEvent(cl_context, *mut cl_int) -> cl_event;
    clSetUserEventStatus(cl_event, cl_int) -> cl_int;
    clSetEventCallback(cl_event, cl_int, EventCallback, Memory) -> cl_int;
    clFlush(Queue) -> cl_int;
    clFinish(Queue) -> cl_int;
    clGetExtensionFunctionAddress(Name) -> Memory;
    clGetExtensionFunctionAddressForPlatform(cl_platform_id, Name) -> Memory;
    clEnqueueReadBuffer(Queue, cl_mem, cl_bool, Size, Size, Memory, cl_uint, Events, Event) -> cl_int;
    clEnqueueWriteBuffer(Queue, cl_mem, cl_bool, Size, Size, Data, cl_uint, Events, Event) -> cl_int;
    clEnqueueReadBufferRect(
        Queue, cl_mem, cl_bool, Sizes, Sizes, Sizes, Size, Size, Size, Size, Memory, cl_uint, Events, Event,
    ) -> cl_int;
    clEnqueueWriteBufferRect(
        Queue, cl_mem, cl_bool, Sizes, Sizes, Sizes, Size, Size, Size, Size, Data, cl_uint, Events, Event,
    ) -> cl_int;
    clEnqueueCopyBuffer(Queue, cl_mem, cl_mem, Size, Size, Size, cl_uint, Events, Event) -> cl_int;
    clEnqueueCopyBufferRect(
        Queue, cl_mem, cl_mem, Sizes, Sizes, Sizes, Size, Size, Size, Size, cl_uint, Events, Event,
    ) -> cl_int;
    clEnqueueFillBuffer(Queue, cl_mem, Data, Size, Size, Size, cl_uint, Events, Event) -> cl_int;
    clEnqueueReadImage(Queue, cl_mem, cl_bool, Sizes, Sizes, Size, Size, Memory, cl_uint, Events, Event) -> cl_int;
    clEnqueueWriteImage(Queue, cl_mem, cl_bool, Sizes, Sizes, Size, Size, Data, cl_uint, Events, Event) -> cl_int;
    clEnqueueCopyImage(Queue, cl_mem, cl_mem, Sizes, Sizes, Sizes, cl_uint, Events, Event) -> cl_int;
    clEnqueueCopyImageToBuffer(Queue, cl_mem, cl_mem, Sizes, Sizes, Size, cl_uint, Events, Event) -> cl_int;
    clEnqueueCopyBufferToImage(Queue, cl_mem, cl_mem, Size, Sizes, Sizes, cl_uint, Events, Event) -> cl_int;
    clEnqueueFillImage(Queue, cl_mem, Data, Sizes, Sizes, cl_uint, Events, Event) -> cl_int;
    clEnqueueMapBuffer(
        Queue, cl_mem, cl_bool, cl_bitfield, Size, Size, cl_uint, Events, Event, *mut cl_int,
    ) -> Memory;
    clEnqueueMapImage(
        Queue, cl_mem, cl_bool, cl_bitfield, Sizes, Sizes, *mut Size, *mut Size, cl_uint, Events, Event, *mut cl_int,
    ) -> Memory;
    clEnqueueUnmapMemObject(Queue, cl_mem, Memory, cl_uint, Events, Event) -> cl_int;
    clEnqueueMigrateMemObjects(Queue, cl_uint, *const cl_mem, cl_bitfield, cl_uint, Events, Event) -> cl_int;
    clEnqueueNDRangeKernel(Queue, cl_kernel, cl_uint, Sizes, Sizes, Sizes, cl_uint, Events, Event) -> cl_int;
    clEnqueueTask(Queue, cl_kernel, cl_uint, Events, Event) -> cl_int;
    clEnqueueNativeKernel(
        Queue, NativeKernel, Memory, Size, cl_uint, *const cl_mem, *const Data, cl_uint, Events, Event,
    ) -> cl_int;
    clEnqueueMarker(Queue, Event) -> cl_int;
    clEnqueueMarkerWithWaitList(Queue, cl_uint, Events, Event) -> cl_int;
    clEnqueueBarrier(Queue) -> cl_int;
    clEnqueueBarrierWithWaitList(Queue, cl_uint, Events, Event) -> cl_int;
    clEnqueueWaitForEvents(Queue, cl_uint, Events) -> cl_int;
    clEnqueueAcquireGLObjects(Queue, cl_uint, *const cl_mem, cl_uint, Events, Event) -> cl_int;
    clEnqueueReleaseGLObjects(Queue, cl_uint, *const cl_mem, cl_uint, Events, Event) -> cl_int;
    clEnqueueAcquireEGLObjectsKHR(Queue, cl_uint, *const cl_mem, cl_uint, Events, Event) -> cl_int;
    clEnqueueReleaseEGLObjectsKHR(Queue, cl_uint, *const cl_mem, cl_uint, Events, Event) -> cl_int;
    clEnqueueSVMFree(Queue, cl_uint, *mut Memory, FreeCallback, Memory, cl_uint, Events, Event) -> cl_int;
    clEnqueueSVMMemcpy(Queue, cl_bool, Memory, Data, Size, cl_uint, Events, Event) -> cl_int;
    clEnqueueSVMMemFill(Queue, Memory, Data, Size, Size, cl_uint, Events, Event) -> cl_int;
    clEnqueueSVMMap(Queue, cl_bool, cl_bitfield, Memory, Size, cl_uint, Events, Event) -> cl_int;
    clEnqueueSVMUnmap(Queue, Memory, cl_uint, Events, Event) -> cl_int;
    clEnqueueSVMMigrateMem(Queue, cl_uint, *const Data, Sizes, cl_bitfield, cl_uint, Events, Event) -> cl_int;
}

impl Target {
    /// Has the libraries of the entry points stay loaded, also when the program unloads them: threads of the layer still look
    /// after what it issued before. Among them is the loader, whose functions are the entry points below the last layer.
    pub fn keep_loaded(&self) {
        let mut kept: Vec<usize> = Vec::new();
        for &entry in &self.entries {
            let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
            // SAFETY: it writes to `info`, for any address.
            if unsafe { libc::dladdr(entry as *const c_void, info.as_mut_ptr()) } == 0 {
                continue;
            }
            // SAFETY: it was written, and has the name and the start of a loaded library.
            let info = unsafe { info.assume_init() };
            if kept.contains(&(info.dli_fbase as usize)) {
                continue;
            }
            kept.push(info.dli_fbase as usize);
            // SAFETY: a name; nothing is loaded that is not there, and that stays.
            unsafe { libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
        }
    }
}
