//! Modules, and the kernels in them.

use std::sync::{Arc, Mutex};

use laxity_model::Nanos;

use crate::context::Context;
use crate::driver::{Driver, say};
use crate::handles::{Handles, lock};
use crate::kernels::Kernel;
use crate::types::*;

/// A module, or a library.
pub struct Module {
    pub context: Option<Arc<Context>>,
    image: Image,
    functions: Mutex<Vec<Arc<Function>>>,
}

/// A kernel of a module.
pub struct Function {
    pub name: String,
    /// As text that ends with a zero byte.
    pub c_name: std::ffi::CString,
    /// Sizes of its parameters, where the kernel's library or the module's PTX tells.
    pub sizes: Option<Vec<usize>>,
    pub kernel: Option<Kernel>,
    /// How long it takes at least.
    pub time: Option<Nanos>,
    /// The handle of its module.
    pub module: usize,
    pub context: Option<Arc<Context>>,
}

/// What a program loads.
enum Image {
    /// With the kernels that it has, and the sizes of their parameters.
    Ptx(Vec<(String, Vec<usize>)>),
    /// With the kernels that it has.
    Cubin(Vec<String>),
    /// Compressed, perhaps: any kernel may be in it.
    FatBinary,
}

pub static MODULES: Handles<Module> = Handles::new(INVALID_HANDLE);
pub static FUNCTIONS: Handles<Function> = Handles::new(INVALID_HANDLE);

/// The longest PTX.
const PTX_MAX: usize = 256 << 20;
const FAT_BINARY: u32 = 0xBA55_ED50;
const FAT_BINARY_WRAPPER: u32 = 0x4662_43B1;

impl Module {
    /// Of `image`, as `cuModuleLoadData` gets it: its size is not told.
    ///
    /// # Safety
    /// It is PTX that ends with a zero byte, or a cubin or fat binary.
    pub unsafe fn load(context: Option<Arc<Context>>, image: *const u8) -> Outcome<Arc<Module>> {
        // SAFETY: the caller's promise; any image has four bytes.
        let image = match unsafe { image.cast::<u32>().read_unaligned() } {
            FAT_BINARY | FAT_BINARY_WRAPPER => Image::FatBinary,
            // "\x7fELF"
            0x464C_457F => {
                // SAFETY: the caller's promise.
                Image::Cubin(unsafe { cubin_kernels(image) }.ok_or(INVALID_IMAGE)?)
            }
            _ => {
                // SAFETY: the caller's promise.
                let length = unsafe { libc::strnlen(image.cast(), PTX_MAX) };
                // SAFETY: as above.
                let text = unsafe { std::slice::from_raw_parts(image, length) };
                let text = std::str::from_utf8(text).map_err(|_| INVALID_IMAGE)?;
                Image::Ptx(ptx_kernels(text).ok_or(INVALID_IMAGE)?)
            }
        };
        Ok(Arc::new(Module { context, image, functions: Mutex::default() }))
    }

    /// The kernel called `name`.
    pub fn function(self: &Arc<Self>, name: &str) -> Outcome<Arc<Function>> {
        if let Some(known) = lock(&self.functions).iter().find(|function| function.name == name) {
            return Ok(known.clone());
        }
        let driver = Driver::get()?;
        let (kernel, time) = (driver.kernels.get(name), driver.settings.time(name));
        let of_image = match &self.image {
            Image::Ptx(kernels) => Some(kernels.iter().find(|(known, _)| known == name).ok_or(NOT_FOUND)?.1.clone()),
            Image::Cubin(kernels) => kernels.iter().any(|known| known == name).then_some(None).ok_or(NOT_FOUND)?,
            Image::FatBinary => None,
        };
        if matches!(self.image, Image::FatBinary) && kernel.is_none() && time.is_none() {
            // Perhaps it is not in there at all.
            tell_missing(name);
            return Err(NOT_FOUND);
        }
        let of_kernel = kernel.map(|kernel| kernel.sizes.iter().map(|&size| size as usize).collect());
        let sizes: Option<Vec<usize>> = of_kernel.or(of_image);
        let function = Arc::new(Function {
            name: name.to_owned(),
            c_name: std::ffi::CString::new(name).map_err(|_| NOT_FOUND)?,
            sizes,
            kernel,
            time,
            module: Arc::as_ptr(self) as usize,
            context: self.context.clone(),
        });
        FUNCTIONS.add(function.clone());
        lock(&self.functions).push(function.clone());
        Ok(function)
    }

    /// The kernels that its image names.
    pub fn names(&self) -> Vec<String> {
        match &self.image {
            Image::Ptx(kernels) => kernels.iter().map(|(name, _)| name.clone()).collect(),
            Image::Cubin(kernels) => kernels.clone(),
            Image::FatBinary => Vec::new(),
        }
    }

    /// Its kernels have no handles any more.
    pub fn unload(&self) {
        for function in lock(&self.functions).drain(..) {
            let _ = FUNCTIONS.remove(Arc::as_ptr(&function) as Handle);
        }
    }
}

impl Function {
    /// Refuses a kernel that nothing stands for.
    pub fn check(&self) -> Outcome {
        if self.kernel.is_some() || self.time.is_some() {
            return Ok(());
        }
        tell_missing(&self.name);
        Err(NOT_SUPPORTED)
    }
}

fn tell_missing(name: &str) {
    say(&format!(
        "kernel {name} is no soft kernel and has no time: write it for LAXITY_SOFTCUDA_KERNELS, or give \
         LAXITY_SOFTCUDA_TIMES={name}=1ms"
    ));
}

/// The kernels of PTX, with the sizes of their parameters. `None`: it is no PTX.
fn ptx_kernels(text: &str) -> Option<Vec<(String, Vec<usize>)>> {
    let text: String =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    if !text.contains(".version") || !text.contains(".target") {
        return None;
    }
    let mut kernels = Vec::new();
    for rest in text.split(".entry").skip(1) {
        let rest = rest.trim_start();
        let end = rest.find(|letter: char| !(letter.is_alphanumeric() || "_$%.".contains(letter)))?;
        let head = rest[end..].trim_start();
        let list = head.strip_prefix('(').and_then(|list| list.split(')').next()).unwrap_or_default();
        let sizes = list.split(',').filter(|parameter| parameter.contains(".param")).map(ptx_size);
        kernels.push((rest[..end].to_owned(), sizes.collect::<Option<_>>()?));
    }
    Some(kernels)
}

/// The size of a parameter such as `.param .align 8 .b8 name[24]`, in bytes.
fn ptx_size(parameter: &str) -> Option<usize> {
    let kind = parameter.split_whitespace().rfind(|word| {
        word.starts_with('.') && word[1..].starts_with(['b', 'u', 's', 'f']) && word[2..].parse::<usize>().is_ok()
    })?;
    let bits: usize = kind[2..].parse().ok()?;
    let count = match parameter.split_once('[') {
        Some((_, rest)) => rest.split(']').next()?.trim().parse().ok()?,
        None => 1,
    };
    Some(bits / 8 * count)
}

/// The kernels of a cubin: an ELF file has a section `.text.NAME` for each.
///
/// # Safety
/// The image is a whole ELF file.
unsafe fn cubin_kernels(image: *const u8) -> Option<Vec<String>> {
    // SAFETY, here and below: the caller's promise; offsets are those that the file states (ELF-64, section headers).
    let u64_at = |at: u64| unsafe { image.add(at as usize).cast::<u64>().read_unaligned() };
    let u32_at = |at: u64| unsafe { image.add(at as usize).cast::<u32>().read_unaligned() };
    let u16_at = |at: u64| unsafe { image.add(at as usize).cast::<u16>().read_unaligned() };
    let (headers, size, count, names) = (u64_at(40), u16_at(58), u16_at(60), u16_at(62));
    if size != 64 || names >= count {
        return None;
    }
    let header = |number: u16| headers + u64::from(number) * 64;
    let strings = u64_at(header(names) + 24);
    let name = |number| {
        let at = strings + u64::from(u32_at(header(number)));
        unsafe { std::ffi::CStr::from_ptr(image.add(at as usize).cast()) }.to_str().ok()
    };
    let kernel = |number| name(number)?.strip_prefix(".text.").map(str::to_owned);
    Some((0..count).filter_map(kernel).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_names_its_kernels_and_the_sizes_of_their_parameters() {
        let text = "//\n.version 8.0\n.target sm_80\n.visible .entry scale(\n .param .u64 scale_param_0, // out\n \
                    .param .f32 scale_param_1,\n .param .align 8 .b8 s[24]\n)\n{\n ret; }\n.entry nothing()\n{ ret; }";
        let kernels = ptx_kernels(text).expect("PTX");
        assert_eq!(kernels, [("scale".to_owned(), vec![8, 4, 24]), ("nothing".to_owned(), vec![])]);
        assert_eq!(ptx_kernels("int main() {}"), None);
    }
}
