//! Devices, limits, errors and versions.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::{entries, put};
use crate::devices::{self, check, current, enter};
use crate::driver::{self, ask};
use crate::types::*;
use crate::{errors, properties};

/// `CU_CTX_SCHED_MASK` and the flag of mapped memory, which devices have anyway.
const FLAGS: c_uint = 0xf;

entries! {
    cudaGetDeviceCount(count: *mut c_int) => put(count, devices::count()?);
    cudaGetDevice(device: *mut c_int) => put(device, current()?);
    cudaSetDevice(device: c_int) => devices::set(device);
    cudaInitDevice(device: c_int, device_flags: c_uint, flags: c_uint) => {
        // The flags of the device count if this flag says so.
        if flags & 1 != 0 {
            set_flags(check(device)?, device_flags)?;
        }
        devices::primary(check(device)?).map(drop)
    };
    cudaSetValidDevices(list: *mut c_int, count: c_int) => {
        let _ = (list, count);
        Ok(())
    };
    cudaDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int)
        => put(value, devices::attribute(check(device)?, attribute)?);
    cudaGetDeviceProperties(to: *mut u8, device: c_int) => {
        let bytes = properties::of(check(device)?)?;
        if to.is_null() {
            return Err(INVALID_VALUE);
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        Ok(())
    };
    cudaDeviceGetPCIBusId(id: *mut c_char, length: c_int, device: c_int)
        => ask!(c"cuDeviceGetPCIBusId": fn(*mut c_char, c_int, c_int)(id, length, check(device)?));
    cudaDeviceGetByPCIBusId(device: *mut c_int, id: Name) => {
        devices::init()?;
        ask!(c"cuDeviceGetByPCIBusId": fn(*mut c_int, Name)(device, id))
    };
    cudaDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int)
        => ask!(c"cuDeviceCanAccessPeer": fn(*mut c_int, c_int, c_int)(can, check(device)?, check(peer)?));
    cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) => {
        enter()?;
        let peer = devices::primary(check(peer)?)?;
        ask!(c"cuCtxEnablePeerAccess": fn(Handle, c_uint)(peer as Handle, flags))
    };
    cudaDeviceDisablePeerAccess(peer: c_int) => {
        enter()?;
        let peer = devices::primary(check(peer)?)?;
        ask!(c"cuCtxDisablePeerAccess": fn(Handle)(peer as Handle))
    };
    cudaDeviceGetP2PAttribute(value: *mut c_int, attribute: c_int, from: c_int, to: c_int)
        => ask!(c"cuDeviceGetP2PAttribute": fn(*mut c_int, c_int, c_int, c_int)(value, attribute, check(from)?, check(to)?));
    cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) => {
        enter()?;
        ask!(c"cuCtxGetStreamPriorityRange": fn(*mut c_int, *mut c_int)(least, greatest))
    };
    cudaDeviceGetLimit(value: *mut usize, limit: c_int) => {
        enter()?;
        ask!(c"cuCtxGetLimit": fn(*mut usize, c_int)(value, limit))
    };
    cudaDeviceSetLimit(limit: c_int, value: usize) => {
        enter()?;
        ask!(c"cuCtxSetLimit": fn(c_int, usize)(limit, value))
    };
    cudaDeviceGetCacheConfig(config: *mut c_int) => {
        enter()?;
        ask!(c"cuCtxGetCacheConfig": fn(*mut c_int)(config))
    };
    cudaDeviceSetCacheConfig(config: c_int) => {
        enter()?;
        ask!(c"cuCtxSetCacheConfig": fn(c_int)(config))
    };
    cudaDeviceSynchronize() => {
        enter()?;
        ask!(c"cuCtxSynchronize": fn()())
    };
    cudaDeviceReset() => devices::reset();
    cudaGetDeviceFlags(flags: *mut c_uint) => {
        let (mut found, mut active) = (0, 0);
        let device = current()?;
        ask!(c"cuDevicePrimaryCtxGetState": fn(c_int, *mut c_uint, *mut c_int)(device, &mut found, &mut active))?;
        put(flags, found)
    };
    cudaSetDeviceFlags(flags: c_uint) => set_flags(current()?, flags);
    cudaDriverGetVersion(version: *mut c_int) => {
        let mut found = 0;
        // Without a driver it is 0.
        let _ = ask!(c"cuDriverGetVersion": fn(*mut c_int)(&mut found));
        put(version, found)
    };
    // That of CUDA 13.5, whose entry points there are.
    cudaRuntimeGetVersion(version: *mut c_int) => put(version, 13_050);
    cudaProfilerStart() => Ok(());
    cudaProfilerStop() => Ok(());
    cudaGetDriverEntryPoint(symbol: Name, function: *mut *mut c_void, flags: u64, status: *mut c_int)
        => entry_point(symbol, function, driver::VERSION, flags, status);
    cudaGetDriverEntryPoint_ptsz(symbol: Name, function: *mut *mut c_void, flags: u64, status: *mut c_int)
        => entry_point(symbol, function, driver::VERSION, flags | PER_THREAD, status);
    cudaGetDriverEntryPointByVersion
        (symbol: Name, function: *mut *mut c_void, version: c_uint, flags: u64, status: *mut c_int)
        => entry_point(symbol, function, version as c_int, flags, status);
    cudaGetDriverEntryPointByVersion_ptsz
        (symbol: Name, function: *mut *mut c_void, version: c_uint, flags: u64, status: *mut c_int)
        => entry_point(symbol, function, version as c_int, flags | PER_THREAD, status);
}

/// `cudaEnablePerThreadDefaultStream`.
const PER_THREAD: u64 = 2;

unsafe fn entry_point(
    symbol: Name,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> Outcome {
    let get = driver::get_proc_address().ok_or(INSUFFICIENT_DRIVER)?;
    // SAFETY: the program's name and places.
    match unsafe { get(symbol, function, version, flags, status) } {
        SUCCESS => Ok(()),
        error => Err(error),
    }
}

fn set_flags(device: c_int, flags: c_uint) -> Outcome {
    ask!(c"cuDevicePrimaryCtxSetFlags": fn(c_int, c_uint)(device, flags & FLAGS))
}

/// The thread's last error, which it forgets.
#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> cudaError {
    errors::last(true)
}

#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> cudaError {
    errors::last(false)
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(error: cudaError) -> Name {
    errors::name(error).as_ptr()
}

/// The name, which says it in words.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(error: cudaError) -> Name {
    errors::name(error).as_ptr()
}

/// A description of what an array would have: programs fill it in beforehand.
#[unsafe(no_mangle)]
extern "C" fn cudaCreateChannelDesc(x: c_int, y: c_int, z: c_int, w: c_int, kind: c_int) -> ChannelFormat {
    ChannelFormat { bits: [x, y, z, w], kind }
}
