//! Launches.

use std::ffi::{CStr, c_char};

use laxity_interpose::Label;
use laxity_policy::program::Work;

use super::stream_wrappers;
use crate::issue::{Place, issue};
use crate::keys;
use crate::real::ask;
use crate::types::*;

stream_wrappers! { real, default:
    cuLaunchKernel / cuLaunchKernel_ptsz(function: Word, grid_x: Word, grid_y: Word, grid_z: Word, block_x: Word,
        block_y: Word, block_z: Word, shared: Word, stream: Word, parameters: Word, extra: Word)
        => launch(function, stream, default, || unsafe {
            real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra)
        });
    cuLaunchCooperativeKernel / cuLaunchCooperativeKernel_ptsz(function: Word, grid_x: Word, grid_y: Word, grid_z: Word,
        block_x: Word, block_y: Word, block_z: Word, shared: Word, stream: Word, parameters: Word)
        => launch(function, stream, default, || unsafe {
            real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters)
        });
    cuLaunchKernelEx / cuLaunchKernelEx_ptsz(config: Word, function: Word, parameters: Word, extra: Word)
        => launch(function, stream_of(config), default, || unsafe { real(config, function, parameters, extra) });
    cuGraphLaunch / cuGraphLaunch_ptsz(graph: Word, stream: Word) => {
        let place = Place { handle: stream as CUstream, default, blocking: false };
        issue(place, || keys::kernel(graph), || Some("a graph".into()), || unsafe { real(graph, stream) })
    };
}

fn launch(function: Word, stream: Word, default: Default0, call: impl FnOnce() -> CUresult) -> CUresult {
    let place = Place { handle: stream as CUstream, default, blocking: false };
    issue(place, || -> Work { keys::kernel(function) }, || name(function), call)
}

/// Of `CUlaunchConfig`: the stream is behind seven numbers of four bytes, at a multiple of eight.
fn stream_of(config: Word) -> Word {
    // SAFETY: null, or the program's description, which the driver reads, too.
    unsafe { (config as *const [Word; 5]).as_ref() }.map_or(0, |words| words[4])
}

/// The name of a kernel, for logs: from CUDA 12.3 on drivers tell.
fn name(function: Word) -> Option<Label> {
    let mut text: *const c_char = std::ptr::null();
    let result = ask!(c"cuFuncGetName": fn(*mut *const c_char, Word)(&mut text, function));
    if result != SUCCESS || text.is_null() {
        return None;
    }
    // SAFETY: the driver's text, which lives as long as the function.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().as_ref().into())
}
