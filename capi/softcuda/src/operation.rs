//! What uses an engine: kernels, copies, fills.

use std::sync::Arc;

use laxity_model::CopyDirection;
use laxity_softgpu::{Event, GpuError, Stream};

use crate::kernels::SoftLaunch;
use crate::module::Function;

/// An operation. It can be issued again and again, as graphs do.
#[derive(Clone)]
pub enum Operation {
    Kernel(Launch),
    Copy(Copy),
    Fill(Fill),
}

/// A launch of a kernel, with the values of its parameters.
#[derive(Clone)]
pub struct Launch {
    pub function: Arc<Function>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub parameters: Parameters,
}

/// Values of parameters, each at a multiple of 16 bytes.
#[derive(Clone, Default)]
pub struct Parameters {
    words: Vec<u128>,
    /// Where each begins, in words.
    starts: Vec<usize>,
}

/// Which engine copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    In,
    Out,
    /// Within the device: the execution engine.
    Within,
}

/// Bytes in rows and planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plane {
    pub address: usize,
    /// From one row to the next, and from one plane to the next.
    pub pitch: usize,
    pub slice: usize,
}

/// A copy of `depth` planes of `height` rows of `width` bytes.
#[derive(Clone)]
pub struct Copy {
    pub way: Way,
    pub from: Plane,
    pub to: Plane,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    /// The bytes, where the program may change its own when the call has returned: then `from` is of these.
    pub staged: Option<Arc<Vec<u8>>>,
}

/// `height` rows of `width` values.
#[derive(Clone, Copy)]
pub struct Fill {
    pub address: usize,
    pub pitch: usize,
    pub width: usize,
    pub height: usize,
    pub value: Value,
}

/// A value of 1, 2 or 4 bytes.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    Byte(u8),
    Half(u16),
    Word(u32),
}

impl Operation {
    /// Gives it to a soft GPU. `None`: there was nothing to do.
    pub fn submit(self, stream: &Stream) -> Result<Option<Event>, GpuError> {
        match self {
            Operation::Kernel(launch) => launch.submit(stream).map(Some),
            Operation::Copy(copy) => copy.submit(stream),
            Operation::Fill(fill) if fill.width == 0 || fill.height == 0 => Ok(None),
            Operation::Fill(fill) => {
                let work = move |_: &laxity_softgpu::DeviceView<'_>| {
                    // SAFETY: as for copies.
                    unsafe { fill.run() };
                    Ok(())
                };
                stream.launch(work).map(Some)
            }
        }
    }
}

impl Launch {
    fn submit(self, stream: &Stream) -> Result<Event, GpuError> {
        let time = self.function.time;
        let Some(kernel) = self.function.kernel else {
            // Launches of kernels with neither were refused.
            return stream.launch_timed(time.unwrap_or_default());
        };
        stream.launch_for(time.unwrap_or_default(), move |_| {
            let parameters = self.parameters.addresses();
            let launch = SoftLaunch {
                grid: self.grid,
                block: self.block,
                shared_bytes: self.shared_bytes,
                count: parameters.len() as u32,
                parameters: parameters.as_ptr(),
            };
            // SAFETY: the library's function, with as many parameters of the sizes that the library states.
            unsafe { (kernel.run)(&launch) };
            Ok(())
        })
    }
}

impl Parameters {
    /// Copies values of these sizes from where `value` says.
    ///
    /// # Safety
    /// `value` answers for each number an address that has so many bytes.
    pub unsafe fn read(sizes: &[usize], value: impl Fn(usize) -> *const u8) -> Self {
        let mut parameters = Parameters::default();
        for (number, &size) in sizes.iter().enumerate() {
            let start = parameters.words.len();
            parameters.starts.push(start);
            parameters.words.resize(start + size.div_ceil(16).max(1), 0);
            // SAFETY: the caller's promise; the words have room for `size` bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(value(number), parameters.words[start..].as_mut_ptr().cast::<u8>(), size);
            }
        }
        parameters
    }

    fn addresses(&self) -> Vec<*const std::ffi::c_void> {
        self.starts.iter().map(|&start| self.words[start..].as_ptr().cast()).collect()
    }
}

impl Copy {
    /// How many bytes.
    pub fn bytes(&self) -> usize {
        self.width.saturating_mul(self.height).saturating_mul(self.depth)
    }

    fn submit(self, stream: &Stream) -> Result<Option<Event>, GpuError> {
        let bytes = self.bytes();
        if bytes == 0 {
            return Ok(None);
        }
        let way = self.way;
        let work = move || {
            // SAFETY: the memory was checked when the program issued the copy, and it promises to keep it until the copy
            // is complete.
            unsafe { self.run() };
            Ok(())
        };
        match way {
            Way::In => stream.copy_by(CopyDirection::In, bytes, work),
            Way::Out => stream.copy_by(CopyDirection::Out, bytes, work),
            Way::Within => stream.launch(move |_| work()),
        }
        .map(Some)
    }

    /// # Safety
    /// All bytes of both ends are there.
    unsafe fn run(&self) {
        let from = self.staged.as_ref().map_or(self.from.address, |bytes| bytes.as_ptr() as usize);
        for plane in 0..self.depth {
            for row in 0..self.height {
                let from = from + plane * self.from.slice + row * self.from.pitch;
                let to = self.to.address + plane * self.to.slice + row * self.to.pitch;
                // SAFETY: the caller's promise; they may overlap.
                unsafe { std::ptr::copy(from as *const u8, to as *mut u8, self.width) };
            }
        }
    }

    /// Keeps its own copy of the bytes to copy.
    ///
    /// # Safety
    /// All bytes of the source are there.
    pub unsafe fn stage(&mut self) {
        let mut bytes = vec![0_u8; self.bytes()];
        let plane = Plane { address: bytes.as_mut_ptr() as usize, pitch: self.width, slice: self.width * self.height };
        // SAFETY: the caller's promise, and the bytes have room for all.
        unsafe { Copy { to: plane, staged: None, ..self.clone() }.run() };
        self.from = plane;
        self.staged = Some(Arc::new(bytes));
    }
}

impl Fill {
    /// # Safety
    /// All bytes are there, and aligned for the value.
    unsafe fn run(&self) {
        for row in 0..self.height {
            let start = self.address + row * self.pitch;
            // SAFETY: the caller's promise.
            unsafe {
                match self.value {
                    Value::Byte(value) => std::ptr::write_bytes(start as *mut u8, value, self.width),
                    Value::Half(value) => std::slice::from_raw_parts_mut(start as *mut u16, self.width).fill(value),
                    Value::Word(value) => std::slice::from_raw_parts_mut(start as *mut u32, self.width).fill(value),
                }
            }
        }
    }
}
