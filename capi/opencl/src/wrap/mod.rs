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
