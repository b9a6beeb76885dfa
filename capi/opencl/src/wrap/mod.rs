//! The entry points that the layer has in the place of the driver's.
#![allow(non_snake_case)]

mod buffers;
mod command_buffers;
mod extensions;
mod images;
mod kernels;
mod maps;
mod order;
mod queues;
mod shared_memory;
mod waits;

use std::ffi::c_void;

/// The entry points of the layer, by name.
pub fn overrides() -> Vec<(&'static str, *const c_void)> {
    [
        buffers::overrides(),
        extensions::overrides(),
        images::overrides(),
        kernels::overrides(),
        maps::overrides(),
        order::overrides(),
        queues::overrides(),
        shared_memory::overrides(),
        waits::overrides(),
    ]
    .concat()
}

/// `name => function` for a list of functions of this layer.
macro_rules! list {
    ($($name:ident),* $(,)?) => {
        /// By name.
        pub fn overrides() -> Vec<(&'static str, *const std::ffi::c_void)> {
            vec![$((stringify!($name), $name as *const std::ffi::c_void)),*]
        }
    };
}
use list;

/// The driver's entry point, which a loader has in its table whenever the program can call ours.
macro_rules! below {
    ($name:ident) => {
        crate::layer::Layer::target().$name.expect("the table had it, or the loader would not call")
    };
}
use below;

/// Entry points that give the driver one operation: the program's call, once the operation's turn has come. In the place
/// of `blocking` stands the driver's argument, which is another one where the layer waits in the program's stead.
macro_rules! operations {
    ($($name:ident($($first:ident: $first_type:ty),* $(; $blocking:ident; $($rest:ident: $rest_type:ty),*)?)
        => $work:expr $(, named $label:expr)?;)*) => {$(
        unsafe extern "C" fn $name(
            queue: cl_command_queue,
            $($first: $first_type,)*
            $($blocking: cl_bool, $($rest: $rest_type,)*)?
            count: cl_uint,
            list: *const cl_event,
            event: *mut cl_event,
        ) -> cl_int {
            let below = below!($name);
            let blocking = false $(|| $blocking != CL_FALSE)?;
            let request = Request { queue, work: $work, blocking, events: Events { count, list, event } };
            let call = |_blocking: cl_bool, Events { count, list, event }: Events| {
                $(let $blocking = _blocking;)?
                // SAFETY: the program's call.
                unsafe { below(queue, $($first,)* $($blocking, $($rest,)*)? count, list, event) }
            };
            // SAFETY: `call` makes the program's call.
            unsafe { enqueue(request, || label!($($label)?), call) }
        }
    )*};
}
use operations;

/// What an operation is called in logs, if it has a name.
macro_rules! label {
    () => {
        None
    };
    ($label:expr) => {
        $label
    };
}
use label;
