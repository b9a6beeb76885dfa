//! Modules, kernels and launches.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use super::{entries, put, stream_entries, text};
use crate::context::{Context, Default0};
use crate::graph::Step;
use crate::module::{FUNCTIONS, Function, MODULES, Module};
use crate::operation::{Launch, Operation, Parameters};
use crate::stream;
use crate::types::*;

/// The most threads of a thread block.
pub const THREADS_MAX: u32 = 1024;
/// In each direction.
pub const BLOCK_MAX: [u32; 3] = [1024, 1024, 64];
/// The most thread blocks in each direction.
pub const GRID_MAX: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// The most shared memory of a thread block.
pub const SHARED_MAX: u32 = 48 << 10;

entries! { call:
    cuModuleLoad(module: *mut CUmodule, path: Name) => {
        let bytes = read(path)?;
        load(module, Some(Context::current()?), bytes.as_ptr().cast())
    };
    cuModuleLoadData(module: *mut CUmodule, image: *const c_void) => load(module, Some(Context::current()?), image);
    cuModuleLoadDataEx(module: *mut CUmodule, image: *const c_void, count: c_uint, options: *const c_int,
        values: *const *mut c_void) => {
        let _ = (count, options, values);
        load(module, Some(Context::current()?), image)
    };
    cuModuleLoadFatBinary(module: *mut CUmodule, image: *const c_void)
        => load(module, Some(Context::current()?), image);
    cuModuleUnload(module: CUmodule) => {
        Context::current()?.quiesce()?;
        MODULES.remove(module).map(|module| module.unload())
    };
    cuModuleGetLoadingMode(mode: *mut c_int) => put(mode, 1);
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: Name) => get(function, module, name);
    cuModuleGetFunctionCount(count: *mut c_uint, module: CUmodule)
        => put(count, MODULES.get(module)?.names().len() as c_uint);
    cuModuleEnumerateFunctions(functions: *mut CUfunction, count: c_uint, module: CUmodule)
        => enumerate(functions, count, module);
    cuModuleGetGlobal_v2(address: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: Name) => {
        let _ = (address, bytes, text(name)?);
        // Functions of the host have no variables that a program could find.
        MODULES.get(module)?;
        Err(NOT_FOUND)
    };
    cuLibraryLoadData(library: *mut Handle, image: *const c_void, jit: *mut c_int, jit_values: *mut *mut c_void,
        jit_count: c_uint, options: *mut c_int, values: *mut *mut c_void, count: c_uint) => {
        let _ = (jit, jit_values, jit_count, options, values, count);
        load(library, None, image)
    };
    cuLibraryLoadFromFile(library: *mut Handle, path: Name, jit: *mut c_int, jit_values: *mut *mut c_void,
        jit_count: c_uint, options: *mut c_int, values: *mut *mut c_void, count: c_uint) => {
        let _ = (jit, jit_values, jit_count, options, values, count);
        let bytes = read(path)?;
        load(library, None, bytes.as_ptr().cast())
    };
    cuLibraryUnload(library: Handle) => MODULES.remove(library).map(|module| module.unload());
    cuLibraryGetKernel(kernel: *mut Handle, library: Handle, name: Name) => get(kernel, library, name);
    cuLibraryGetKernelCount(count: *mut c_uint, library: Handle)
        => put(count, MODULES.get(library)?.names().len() as c_uint);
    cuLibraryEnumerateKernels(kernels: *mut Handle, count: c_uint, library: Handle) => enumerate(kernels, count, library);
    cuLibraryGetModule(module: *mut CUmodule, library: Handle) => {
        MODULES.get(library)?;
        put(module, library)
    };
    cuKernelGetFunction(function: *mut CUfunction, kernel: Handle) => {
        FUNCTIONS.get(kernel)?;
        put(function, kernel)
    };
    cuKernelGetLibrary(library: *mut Handle, kernel: Handle) => put(library, FUNCTIONS.get(kernel)?.module as Handle);
    cuKernelGetName(name: *mut *const c_char, kernel: Handle) => put(name, FUNCTIONS.get(kernel)?.c_name.as_ptr());
    cuKernelGetParamInfo(kernel: Handle, index: usize, offset: *mut usize, size: *mut usize)
        => parameter(&*FUNCTIONS.get(kernel)?, index, offset, size);
    cuKernelGetAttribute(value: *mut c_int, attribute: c_int, kernel: Handle, device: CUdevice) => {
        let _ = device;
        put(value, attribute_of(&*FUNCTIONS.get(kernel)?, attribute)?)
    };
    cuKernelSetAttribute(attribute: c_int, value: c_int, kernel: Handle, device: CUdevice) => {
        let _ = device;
        set_attribute(&*FUNCTIONS.get(kernel)?, attribute, value)
    };
    cuKernelSetCacheConfig(kernel: Handle, config: c_int, device: CUdevice) => {
        let _ = device;
        FUNCTIONS.get(kernel)?;
        if (0..=3).contains(&config) { Ok(()) } else { Err(INVALID_VALUE) }
    };
    cuFuncGetName(name: *mut *const c_char, function: CUfunction) => put(name, FUNCTIONS.get(function)?.c_name.as_ptr());
    cuFuncGetModule(module: *mut CUmodule, function: CUfunction) => put(module, FUNCTIONS.get(function)?.module as Handle);
    cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, size: *mut usize)
        => parameter(&*FUNCTIONS.get(function)?, index, offset, size);
    cuFuncIsLoaded(state: *mut c_int, function: CUfunction) => {
        FUNCTIONS.get(function)?;
        put(state, 1)
    };
    cuFuncLoad(function: CUfunction) => FUNCTIONS.get(function).map(drop);
    cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: CUfunction)
        => put(value, attribute_of(&*FUNCTIONS.get(function)?, attribute)?);
    cuFuncSetAttribute(function: CUfunction, attribute: c_int, value: c_int)
        => set_attribute(&*FUNCTIONS.get(function)?, attribute, value);
    cuFuncSetCacheConfig(function: CUfunction, config: c_int) => {
        FUNCTIONS.get(function)?;
        if (0..=3).contains(&config) { Ok(()) } else { Err(INVALID_VALUE) }
    };
    cuOccupancyMaxActiveBlocksPerMultiprocessor(count: *mut c_int, function: CUfunction, threads: c_int, shared: usize)
        => occupancy(count, function, threads, shared);
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
        (count: *mut c_int, function: CUfunction, threads: c_int, shared: usize, flags: c_uint)
        => if flags <= 1 { occupancy(count, function, threads, shared) } else { Err(INVALID_VALUE) };
}

stream_entries! { default:
    cuLaunchKernel / cuLaunchKernel_ptsz(function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint, shared_bytes: c_uint, stream: CUstream,
        parameters: *const *const c_void, extra: *const *const c_void) => {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        launch(default, function, grid, block, shared_bytes, stream, parameters, extra)
    };
    cuLaunchCooperativeKernel / cuLaunchCooperativeKernel_ptsz(function: CUfunction, grid_x: c_uint, grid_y: c_uint,
        grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared_bytes: c_uint, stream: CUstream,
        parameters: *const *const c_void) => {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        launch(default, function, grid, block, shared_bytes, stream, parameters, std::ptr::null())
    };
    cuLaunchKernelEx / cuLaunchKernelEx_ptsz(config: *const LaunchConfig, function: CUfunction,
        parameters: *const *const c_void, extra: *const *const c_void) => {
        let config = config.as_ref().ok_or(INVALID_VALUE)?;
        launch(default, function, config.grid, config.block, config.shared_bytes, config.stream, parameters, extra)
    };
}

fn read(path: Name) -> Outcome<Vec<u8>> {
    // SAFETY: the program's text.
    let mut bytes = std::fs::read(unsafe { text(path) }?).map_err(|_| FILE_NOT_FOUND)?;
    bytes.extend([0; 8]);
    Ok(bytes)
}

unsafe fn load(module: *mut CUmodule, context: Option<Arc<Context>>, image: *const c_void) -> Outcome {
    if module.is_null() || image.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the program's image and place.
    unsafe { put(module, MODULES.add(Module::load(context, image.cast())?)) }
}

unsafe fn get(function: *mut CUfunction, module: CUmodule, name: Name) -> Outcome {
    // SAFETY: the program's text and place.
    unsafe { put(function, Arc::as_ptr(&MODULES.get(module)?.function(text(name)?)?) as CUfunction) }
}

unsafe fn enumerate(functions: *mut CUfunction, count: c_uint, module: CUmodule) -> Outcome {
    let module = MODULES.get(module)?;
    for (at, name) in module.names().iter().take(count as usize).enumerate() {
        // SAFETY: the program's list has room for so many.
        unsafe { put(functions.add(at), Arc::as_ptr(&module.function(name)?) as CUfunction) }?;
    }
    Ok(())
}

unsafe fn parameter(function: &Function, index: usize, offset: *mut usize, size: *mut usize) -> Outcome {
    let sizes = function.sizes.as_ref().ok_or(NOT_SUPPORTED)?;
    let of_index = *sizes.get(index).ok_or(INVALID_VALUE)?;
    // SAFETY: the program's places.
    unsafe {
        put(offset, offsets(sizes)[index])?;
        // A place that is null is left out.
        let _ = put(size, of_index);
    }
    Ok(())
}

/// Where parameters of these sizes are in one buffer.
fn offsets(sizes: &[usize]) -> Vec<usize> {
    let mut end = 0_usize;
    let mut place = |size: usize| {
        let start = end.next_multiple_of(size.next_power_of_two().clamp(1, 8));
        end = start + size;
        start
    };
    sizes.iter().map(|&size| place(size)).collect()
}

/// `CUfunction_attribute`.
fn attribute_of(_function: &Function, attribute: c_int) -> Outcome<c_int> {
    Ok(match attribute {
        0 => THREADS_MAX as c_int,
        4 => 32,     // registers
        5 | 6 => 80, // versions of PTX and of the binary
        8 => SHARED_MAX as c_int,
        1..=3 | 7 | 9..=16 => 0,
        _ => return Err(INVALID_VALUE),
    })
}

fn set_attribute(_function: &Function, attribute: c_int, value: c_int) -> Outcome {
    // The most shared memory, and the share of it. Others cannot be set.
    let can_be = (attribute == 8 && (0..=SHARED_MAX as c_int).contains(&value)) || attribute == 9;
    if can_be { Ok(()) } else { Err(INVALID_VALUE) }
}

unsafe fn occupancy(count: *mut c_int, function: CUfunction, threads: c_int, shared: usize) -> Outcome {
    FUNCTIONS.get(function)?;
    let threads = u32::try_from(threads).ok().filter(|&threads| threads > 0).ok_or(INVALID_VALUE)?;
    let by_memory = (SHARED_MAX as usize).checked_div(shared).unwrap_or(usize::MAX);
    let blocks = (THREADS_MAX / threads).min(16).min(u32::try_from(by_memory).unwrap_or(u32::MAX));
    // SAFETY: the program's place.
    unsafe { put(count, blocks as c_int) }
}

#[expect(clippy::too_many_arguments, reason = "as many as CUDA's launch has")]
unsafe fn launch(
    default: Default0,
    function: CUfunction,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: CUstream,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> Outcome {
    let (function, stream) = (FUNCTIONS.get(function)?, stream::find(stream, default)?);
    let threads = block.iter().try_fold(1_u32, |all, &side| all.checked_mul(side)).ok_or(INVALID_VALUE)?;
    let fits = |sides: [u32; 3], max: [u32; 3]| sides.iter().zip(max).all(|(&side, max)| (1..=max).contains(&side));
    if !fits(grid, GRID_MAX) || !fits(block, BLOCK_MAX) || threads > THREADS_MAX || shared_bytes > SHARED_MAX {
        return Err(INVALID_VALUE);
    }
    // A kernel of a library is of no context: it is launched in the current one.
    let context = function.context.clone().map_or_else(Context::current, Ok)?;
    if !Arc::ptr_eq(&context, &stream.context) {
        return Err(INVALID_HANDLE);
    }
    function.check()?;
    let parameters = match (&function.sizes, function.kernel) {
        (Some(sizes), Some(_)) if !sizes.is_empty() => {
            // SAFETY: the program's parameters, as many and as large as its kernel has.
            unsafe { values(sizes, parameters, extra) }?
        }
        _ => Parameters::default(),
    };
    stream.issue([Step::Operation(Operation::Kernel(Launch { function, grid, block, shared_bytes, parameters }))])
}

unsafe fn values(
    sizes: &[usize],
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> Outcome<Parameters> {
    if !parameters.is_null() {
        if !extra.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller's promise.
        return Ok(unsafe { Parameters::read(sizes, |number| (*parameters.add(number)).cast()) });
    }
    let Some(buffer) = (unsafe { buffer(extra) }) else { return Err(INVALID_VALUE) };
    let offsets = offsets(sizes);
    // SAFETY: as above.
    Ok(unsafe { Parameters::read(sizes, |number| buffer.add(offsets[number])) })
}

/// All parameters in one buffer, as `extra` says: pairs of a name and a value, up to the name 0.
unsafe fn buffer(extra: *const *const c_void) -> Option<*const u8> {
    const POINTER: usize = 1;
    if extra.is_null() {
        return None;
    }
    let mut at = extra;
    loop {
        // SAFETY: the program's list, which ends with 0.
        let (name, value) = unsafe { (*at as usize, if (*at).is_null() { std::ptr::null() } else { *at.add(1) }) };
        match name {
            0 => return None,
            POINTER => return Some(value.cast()),
            // SAFETY: as above.
            _ => at = unsafe { at.add(2) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_in_one_buffer_are_aligned_as_a_compiler_aligns_them() {
        assert_eq!(offsets(&[4, 8, 1, 2, 24]), [0, 8, 16, 18, 24]);
    }
}
