//! What the compiler writes into programs, kernels and launches.

use std::cell::RefCell;
use std::ffi::{CStr, c_int, c_uint, c_void};

use super::{entries, put, stream_entries};
use crate::binaries;
use crate::devices::enter;
use crate::driver::ask;
use crate::errors::say;
use crate::types::*;

/// How a kernel is launched: `<<<grid, block, shared, stream>>>`.
#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: usize,
}

thread_local! {
    /// Of launches that the thread has begun to write.
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

entries! {
    __cudaPopCallConfiguration(grid: *mut Dim3, block: *mut Dim3, shared_bytes: *mut usize, stream: *mut Stream) => {
        let top = CONFIGURATIONS.with_borrow_mut(Vec::pop).ok_or(MISSING_CONFIGURATION)?;
        put(grid, top.grid)?;
        put(block, top.block)?;
        put(shared_bytes, top.shared_bytes)?;
        put(stream, top.stream as Stream)
    };
    __cudaGetKernel(kernel: *mut Kernel, host: *const c_void) => put(kernel, binaries::kernel(host as usize)? as Kernel);
    cudaGetKernel(kernel: *mut Kernel, host: *const c_void) => put(kernel, binaries::kernel(host as usize)? as Kernel);
    cudaGetFuncBySymbol(function: *mut Handle, host: *const c_void) => put(function, function_of(host)?);
    cudaFuncGetName(name: *mut Name, host: *const c_void) => put(name, binaries::name(host as usize)?);
    cudaFuncGetAttributes(to: *mut Attributes, host: *const c_void) => {
        let function = function_of(host)?;
        put(to, Attributes::of(function)?)
    };
    cudaFuncSetAttribute(host: *const c_void, attribute: c_int, value: c_int)
        => ask!(c"cuFuncSetAttribute": fn(Handle, c_int, c_int)(function_of(host)?, attribute, value));
    cudaFuncSetCacheConfig(host: *const c_void, config: c_int)
        => ask!(c"cuFuncSetCacheConfig": fn(Handle, c_int)(function_of(host)?, config));
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, host: *const c_void, threads: c_int, shared: usize)
        => occupancy(blocks, host, threads, shared, 0);
    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
        (blocks: *mut c_int, host: *const c_void, threads: c_int, shared: usize, flags: c_uint)
        => occupancy(blocks, host, threads, shared, flags);
    cudaLibraryLoadData(library: *mut Handle, code: *const c_void, jit: *mut c_int, jit_values: *mut *mut c_void,
        jit_count: c_uint, options: *mut c_int, values: *mut *mut c_void, count: c_uint) => {
        enter()?;
        type Options = *mut c_int;
        type Values = *mut *mut c_void;
        ask!(c"cuLibraryLoadData": fn(*mut Handle, *const c_void, Options, Values, c_uint, Options, Values, c_uint)(
            library, code, jit, jit_values, jit_count, options, values, count
        ))
    };
    cudaLibraryUnload(library: Handle) => ask!(c"cuLibraryUnload": fn(Handle)(library));
    cudaLibraryGetKernel(kernel: *mut Kernel, library: Handle, name: Name) => {
        if name.is_null() {
            return Err(INVALID_VALUE);
        }
        let found = binaries::of_library(library as usize, CStr::from_ptr(name))?;
        binaries::know(found);
        put(kernel, found as Kernel)
    };
}

stream_entries! { default:
    cudaLaunchKernel / cudaLaunchKernel_ptsz(host: *const c_void, grid: Dim3, block: Dim3, arguments: *mut *mut c_void,
        shared_bytes: usize, stream: Stream) => launch(host, grid, block, arguments, shared_bytes, default.stream(stream));
    __cudaLaunchKernel / __cudaLaunchKernel_ptsz(kernel: Kernel, grid: Dim3, block: Dim3, arguments: *mut *mut c_void,
        shared_bytes: usize, stream: Stream)
        => launch(kernel, grid, block, arguments, shared_bytes, default.stream(stream));
    cudaLaunchCooperativeKernel / cudaLaunchCooperativeKernel_ptsz(host: *const c_void, grid: Dim3, block: Dim3,
        arguments: *mut *mut c_void, shared_bytes: usize, stream: Stream) => {
        let function = function_of(host)?;
        let shared_bytes = c_uint::try_from(shared_bytes).map_err(|_| INVALID_CONFIGURATION)?;
        type Arguments = *mut *mut c_void;
        ask!(c"cuLaunchCooperativeKernel":
            fn(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Stream, Arguments)(
                function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes, default.stream(stream), arguments
            )).map_err(of_launch)
    };
    cudaLaunchKernelExC / cudaLaunchKernelExC_ptsz
        (config: *const LaunchConfig, host: *const c_void, arguments: *mut *mut c_void) => {
        let config = config.as_ref().ok_or(INVALID_VALUE)?;
        let kernel = binaries::kernel(host as usize)? as Kernel;
        let told = DriverLaunchConfig {
            grid: config.grid,
            block: config.block,
            shared_bytes: c_uint::try_from(config.shared_bytes).map_err(|_| INVALID_CONFIGURATION)?,
            stream: default.stream(config.stream),
            attributes: config.attributes,
            attribute_count: config.attribute_count,
        };
        type Arguments = *mut *mut c_void;
        ask!(c"cuLaunchKernelEx": fn(*const DriverLaunchConfig, Kernel, Arguments, Arguments)(
            &told, kernel, arguments, std::ptr::null_mut()
        )).map_err(of_launch)
    };
}

/// Before a program begins: answers a handle of its kernels.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: *const c_void) -> *mut *mut c_void {
    // SAFETY: what the compiler wrote.
    unsafe { binaries::register(wrapper) as *mut *mut c_void }
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_binary: *mut *mut c_void) {}

#[unsafe(no_mangle)]
extern "C" fn __cudaUnregisterFatBinary(binary: *mut *mut c_void) {
    binaries::unregister(binary as usize);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFunction(
    binary: *mut *mut c_void,
    host: *const c_void,
    _device: *mut c_void,
    name: Name,
    _threads: c_int,
    _tid: *mut c_void,
    _bid: *mut c_void,
    _block: *mut c_void,
    _grid: *mut c_void,
    _warp: *mut c_int,
) {
    if !name.is_null() {
        // SAFETY: what the compiler wrote: text.
        binaries::register_function(binary as usize, host as usize, unsafe { CStr::from_ptr(name) });
    }
}

/// Variables of kernels. A program may have them; what copies to or from one by its symbol is refused by name.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterVar() {}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterHostVar() {}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterManagedVar() {
    say("variables of kernels that are managed have no memory: what uses them fails");
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterUnifiedTable() {}

#[unsafe(no_mangle)]
extern "C" fn __cudaInitModule(_binary: *mut *mut c_void) -> i8 {
    1
}

/// A launch begins: its kernel's arguments are computed next. Answers 0.
#[unsafe(no_mangle)]
extern "C" fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared_bytes: usize, stream: Stream) -> c_uint {
    let configuration = Configuration { grid, block, shared_bytes, stream: stream as usize };
    CONFIGURATIONS.with_borrow_mut(|stack| stack.push(configuration));
    0
}

unsafe fn launch(
    host: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *mut *mut c_void,
    shared_bytes: usize,
    stream: Stream,
) -> Outcome {
    let kernel = binaries::kernel(host as usize)? as Kernel;
    let shared_bytes = c_uint::try_from(shared_bytes).map_err(|_| INVALID_CONFIGURATION)?;
    type Arguments = *mut *mut c_void;
    ask!(c"cuLaunchKernel":
    fn(Kernel, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Stream, Arguments, Arguments)(
        kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes, stream, arguments,
        std::ptr::null_mut()
    ))
    .map_err(of_launch)
}

/// What the runtime calls an error of a launch.
fn of_launch(error: cudaError) -> cudaError {
    if error == INVALID_VALUE { INVALID_CONFIGURATION } else { error }
}

/// The kernel in the current context.
fn function_of(host: *const c_void) -> Outcome<Handle> {
    let kernel = binaries::kernel(host as usize)? as Kernel;
    let mut function: Handle = std::ptr::null_mut();
    ask!(c"cuKernelGetFunction": fn(*mut Handle, Kernel)(&mut function, kernel))?;
    Ok(function)
}

unsafe fn occupancy(
    blocks: *mut c_int,
    host: *const c_void,
    threads: c_int,
    shared_bytes: usize,
    flags: c_uint,
) -> Outcome {
    ask!(c"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags": fn(*mut c_int, Handle, c_int, usize, c_uint)(
        blocks, function_of(host)?, threads, shared_bytes, flags
    ))
}

/// `cudaFuncAttributes`, without what is reserved at its end.
#[repr(C)]
struct Attributes {
    shared: usize,
    constant: usize,
    local: usize,
    /// The most threads of a thread block, registers, versions of PTX and of the binary, caching, the most dynamic shared
    /// memory, the share of it, and clusters.
    others: [c_int; 12],
}

impl Attributes {
    fn of(function: Handle) -> Outcome<Self> {
        let get = |attribute: c_int| -> Outcome<c_int> {
            let mut value = 0;
            ask!(c"cuFuncGetAttribute": fn(*mut c_int, c_int, Handle)(&mut value, attribute, function))?;
            Ok(value)
        };
        let size = |attribute| get(attribute).map(|value| usize::try_from(value).unwrap_or(0));
        let mut others = [0; 12];
        for (place, attribute) in others.iter_mut().zip([0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15]) {
            *place = get(attribute)?;
        }
        Ok(Attributes { shared: size(1)?, constant: size(2)?, local: size(3)?, others })
    }
}
