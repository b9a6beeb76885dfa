//! Kernels of the host, from the libraries that the environment names (`laxity/softcuda.h`).

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `struct laxity_soft_launch`.
#[repr(C)]
pub struct SoftLaunch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub count: u32,
    pub parameters: *const *const c_void,
}

/// `struct laxity_soft_kernel`.
#[repr(C)]
struct Entry {
    name: *const c_char,
    run: Option<unsafe extern "C" fn(*const SoftLaunch)>,
    count: u32,
    sizes: *const u32,
}

/// A kernel.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    pub run: unsafe extern "C" fn(*const SoftLaunch),
    /// Of its parameters, in bytes.
    pub sizes: &'static [u32],
}

/// All kernels by name. The libraries stay loaded.
#[derive(Debug, Default)]
pub struct Kernels(BTreeMap<String, Kernel>);

impl Kernels {
    /// Those of all `libraries`; of two of one name the first counts.
    pub fn load(libraries: &[PathBuf]) -> Result<Kernels, String> {
        let mut kernels = Kernels::default();
        for library in libraries {
            for (name, kernel) in read(library)? {
                kernels.0.entry(name).or_insert(kernel);
            }
        }
        Ok(kernels)
    }

    pub fn get(&self, name: &str) -> Option<Kernel> {
        self.0.get(name).copied()
    }
}

fn read(library: &Path) -> Result<Vec<(String, Kernel)>, String> {
    let path = CString::new(library.as_os_str().as_bytes()).map_err(|_| "a path with a zero byte".to_owned())?;
    // SAFETY: the user names the library, whose constructors run.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: after a failure it is text.
        let reason = unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned();
        return Err(format!("LAXITY_SOFTCUDA_KERNELS: {reason}"));
    }
    // SAFETY: the handle is that of a loaded library.
    let mut entry: *const Entry = unsafe { libc::dlsym(handle, c"laxity_soft_kernels".as_ptr()) }.cast();
    if entry.is_null() {
        let path = library.display();
        return Err(format!("LAXITY_SOFTCUDA_KERNELS: {path} has no table laxity_soft_kernels (laxity/softcuda.h)"));
    }
    let mut kernels = Vec::new();
    loop {
        // SAFETY: the table has the header's form, and ends with an entry without a name.
        let Entry { name, run, count, sizes } = unsafe { entry.read() };
        if name.is_null() {
            return Ok(kernels);
        }
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        let Some(run) = run else { return Err(format!("kernel {name} of {} has no function", library.display())) };
        // SAFETY: as above; the library stays loaded.
        let sizes = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(sizes, count as usize) } };
        kernels.push((name, Kernel { run, sizes }));
        // SAFETY: the table has another entry.
        entry = unsafe { entry.add(1) };
    }
}
