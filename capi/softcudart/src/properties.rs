//! `cudaDeviceProp` of CUDA 13, field by field, from the driver's attributes.

use std::ffi::{c_int, c_void};

use crate::devices::attribute;
use crate::driver::ask;
use crate::types::*;

/// A field.
#[derive(Clone, Copy)]
enum Field {
    Name,
    Uuid,
    Memory,
    /// An `int` for each attribute (`CUdevice_attribute`); of 0: a field that is 0.
    Ints(&'static [c_int]),
    Size(c_int),
    /// So many `int`s that are reserved.
    Reserved(usize),
}

use Field::{Ints, Memory, Name as NameOf, Reserved, Size, Uuid};

const FIELDS: &[Field] = &[
    NameOf,
    Uuid,
    // The LUID, which Windows has, and its mask.
    Ints(&[0, 0, 0]),
    Memory,
    Size(8),
    Ints(&[12, 10]),
    Size(11),
    Ints(&[1, 2, 3, 4, 5, 6, 7]),
    Size(9),
    Ints(&[75, 76]),
    Size(14),
    Size(51),
    Ints(&[16, 18, 19]),
    // Textures, then surfaces.
    Ints(&[21, 77, 22, 23, 73, 74, 70, 71, 72, 45, 46, 24, 25, 26, 47, 48, 49, 52, 42, 43, 27, 28, 29, 53, 54]),
    Ints(&[55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68]),
    Size(30),
    Ints(&[31, 32, 33, 34, 50, 35, 40, 41, 37, 38, 108, 39, 78, 79, 80]),
    Size(81),
    Ints(&[82, 83, 84, 85, 86, 88, 89, 90, 91, 95]),
    Size(97),
    Ints(&[100, 101, 106, 109]),
    Size(111),
    Ints(&[99, 112, 113, 114, 115, 116, 117, 118, 119, 121, 125, 120, 129, 130, 131, 133, 134, 139, 140, 143]),
    Reserved(56),
];

/// The properties of a device, as the program's structure has them.
pub fn of(device: c_int) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    for field in FIELDS {
        match *field {
            NameOf => {
                let mut name = [0_u8; 256];
                let place = name.as_mut_ptr().cast();
                ask!(c"cuDeviceGetName": fn(*mut c_void, c_int, c_int)(place, name.len() as c_int, device))?;
                bytes.extend(name);
            }
            Uuid => {
                let mut uuid = [0_u8; 16];
                ask!(c"cuDeviceGetUuid": fn(*mut c_void, c_int)(uuid.as_mut_ptr().cast(), device))?;
                bytes.extend(uuid);
            }
            Memory => {
                let mut memory = 0_usize;
                ask!(c"cuDeviceTotalMem": fn(*mut usize, c_int)(&mut memory, device))?;
                align(&mut bytes, 8);
                bytes.extend(memory.to_ne_bytes());
            }
            Ints(attributes) => {
                for &number in attributes {
                    let value = if number == 0 { 0 } else { attribute(device, number)? };
                    bytes.extend(value.to_ne_bytes());
                }
            }
            Size(number) => {
                align(&mut bytes, 8);
                bytes.extend(usize::try_from(attribute(device, number)?).unwrap_or(0).to_ne_bytes());
            }
            Reserved(count) => bytes.resize(bytes.len() + 4 * count, 0),
        }
    }
    align(&mut bytes, 8);
    Ok(bytes)
}

fn align(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}
