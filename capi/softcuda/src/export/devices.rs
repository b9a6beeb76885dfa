//! Devices, and what they are like.

use std::ffi::{c_char, c_int, c_uint};

use super::kernels::{BLOCK_MAX, GRID_MAX, SHARED_MAX, THREADS_MAX};
use super::{entries, put, text};
use crate::driver::{Device, Driver};
use crate::types::*;

entries! { call:
    cuDeviceGetCount(count: *mut c_int) => put(count, Driver::get()?.devices.len() as c_int);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int) => {
        Driver::get()?.device(ordinal)?;
        put(device, ordinal)
    };
    cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice)
        => put_text(&format!("Laxity soft GPU {}", Driver::get()?.device(device)?.ordinal), name, length);
    cuDeviceGetUuid(uuid: *mut Uuid, device: CUdevice) => put(uuid, Driver::get()?.device(device)?.uuid());
    cuDeviceGetUuid_v2(uuid: *mut Uuid, device: CUdevice) => put(uuid, Driver::get()?.device(device)?.uuid());
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice) => {
        Driver::get()?.device(device)?;
        put(bytes, Driver::get()?.settings.config.memory as usize)
    };
    cuDeviceTotalMem(bytes: *mut c_uint, device: CUdevice) => {
        Driver::get()?.device(device)?;
        put(bytes, u32::try_from(Driver::get()?.settings.config.memory).unwrap_or(u32::MAX))
    };
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: CUdevice)
        => put(value, of_device(Driver::get()?.device(device)?, attribute)?);
    cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: CUdevice) => {
        Driver::get()?.device(device)?;
        put(major, CAPABILITY.0)?;
        put(minor, CAPABILITY.1)
    };
    cuDeviceGetPCIBusId(id: *mut c_char, length: c_int, device: CUdevice)
        => put_text(&bus_id(Driver::get()?.device(device)?.ordinal), id, length);
    cuDeviceGetByPCIBusId(device: *mut CUdevice, id: Name) => {
        let (wanted, devices) = (text(id)?, &Driver::get()?.devices);
        let found = devices.iter().find(|device| bus_id(device.ordinal) == wanted).ok_or(INVALID_DEVICE)?;
        put(device, found.ordinal as CUdevice)
    };
    cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice) => {
        Driver::get()?.device(device)?;
        Driver::get()?.device(peer)?;
        put(can, c_int::from(device != peer))
    };
    cuDeviceGetP2PAttribute(value: *mut c_int, attribute: c_int, from: CUdevice, to: CUdevice) => {
        Driver::get()?.device(from)?;
        Driver::get()?.device(to)?;
        // 2: whether one can use the memory of the other.
        if from == to { Err(INVALID_DEVICE) } else { put(value, c_int::from(attribute == 2)) }
    };
}

/// That of its instructions, which no kernel of the host has.
const CAPABILITY: (c_int, c_int) = (8, 0);

fn bus_id(ordinal: usize) -> String {
    // A domain that no machine has.
    format!("FFFF:{ordinal:02X}:00.0")
}

unsafe fn put_text(value: &str, to: *mut c_char, length: c_int) -> Outcome {
    let room = usize::try_from(length).ok().filter(|&length| length > 0 && !to.is_null()).ok_or(INVALID_VALUE)?;
    let bytes = &value.as_bytes()[..value.len().min(room - 1)];
    // SAFETY: the program's place has `length` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len());
        to.add(bytes.len()).write(0);
    }
    Ok(())
}

/// `CUdevice_attribute`. Others are 0: a limit that no kernel of the host reaches, or a feature that there
/// is not.
fn of_device(device: &Device, attribute: c_int) -> Outcome<c_int> {
    let copy_engines = c_int::from(Driver::get()?.settings.config.copy_engines);
    Ok(match attribute {
        1 => THREADS_MAX as c_int,
        2..=4 => BLOCK_MAX[attribute as usize - 2] as c_int,
        5..=7 => GRID_MAX[attribute as usize - 5] as c_int,
        8 | 81 | 97 => SHARED_MAX as c_int,
        9 => 64 << 10,                    // constant memory
        10 => 32,                         // threads of a warp
        11 => c_int::MAX,                 // pitch of copies
        12 | 82 => 65_536,                // registers
        13 | 36 => 1_000_000,             // clocks, kHz
        14 | 30 => 512,                   // alignment of textures and surfaces
        15 => 1,                          // copies beside kernels
        16 => 1,                          // multiprocessors
        19 | 41 | 83 | 89 | 91 | 99 => 1, // mapped, unified, managed and registered memory
        34 => 0,
        33 => device.ordinal as c_int,
        37 => 64,
        38 => 1 << 20,
        39 => 1024,
        40 => copy_engines,
        50 => 0xFFFF, // PCI domain
        51 => 32,
        75 => CAPABILITY.0,
        76 => CAPABILITY.1,
        78 | 95 | 115 => 1, // priorities of streams, cooperative launches, memory pools
        106 => 16,
        20..=35 | 42..=161 | 17 | 18 => 0,
        _ => return Err(INVALID_VALUE),
    })
}
