//! The driver of a process: what it was told, and its devices.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use laxity_softgpu::{Options, SERVER_VARIABLE, SoftGpu};
use laxity_sys::process::forks;

use crate::context::{Context, Primary};
use crate::handles::{Handles, lock};
use crate::kernels::Kernels;
use crate::settings::Settings;
use crate::types::*;

/// The driver.
pub struct Driver {
    pub settings: Settings,
    pub devices: Vec<Arc<Device>>,
    pub kernels: Kernels,
    pub contexts: Handles<Context>,
    /// In which process `cuInit` was called: a copy of it has no devices.
    forks: u32,
}

/// A device.
pub struct Device {
    pub ordinal: usize,
    gpu: Mutex<Option<SoftGpu>>,
    pub primary: Mutex<Primary>,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();

impl Driver {
    /// `cuInit`.
    pub fn init() -> Outcome<&'static Driver> {
        if let Some(driver) = DRIVER.get() {
            return driver.check();
        }
        let settings = Settings::of_environment().map_err(|reason| {
            say(&reason);
            NO_DEVICE
        })?;
        if settings.devices == 0 {
            return Err(NO_DEVICE);
        }
        let kernels = Kernels::load(&settings.kernels).map_err(|reason| {
            say(&reason);
            FILE_NOT_FOUND
        })?;
        let device = |ordinal| Arc::new(Device { ordinal, gpu: Mutex::default(), primary: Mutex::default() });
        let devices = (0..settings.devices).map(device).collect();
        let contexts = Handles::new(INVALID_CONTEXT);
        DRIVER.get_or_init(|| Driver { settings, devices, kernels, contexts, forks: forks() }).check()
    }

    /// The driver, if the program has called `cuInit`.
    pub fn get() -> Outcome<&'static Driver> {
        DRIVER.get().ok_or(NOT_INITIALIZED)?.check()
    }

    pub fn device(&self, device: CUdevice) -> Outcome<&Arc<Device>> {
        usize::try_from(device).ok().and_then(|ordinal| self.devices.get(ordinal)).ok_or(INVALID_DEVICE)
    }

    fn check(&self) -> Outcome<&Driver> {
        if forks() == self.forks { Ok(self) } else { Err(NOT_INITIALIZED) }
    }
}

impl Device {
    /// The soft GPU, which is opened now if it has not been.
    pub fn gpu(&self) -> Outcome<SoftGpu> {
        let mut gpu = lock(&self.gpu);
        if let Some(gpu) = &*gpu {
            return Ok(gpu.clone());
        }
        let settings = &Driver::get()?.settings;
        let options = Options { server: server(), ..Options::default() };
        let name = format!("{}{}", settings.name, self.ordinal);
        let opened = SoftGpu::open_with(&name, settings.config, &options).map_err(|error| {
            say(&error.to_string());
            DEVICE_UNAVAILABLE
        })?;
        Ok(gpu.insert(opened).clone())
    }

    /// What identifies it.
    pub fn uuid(&self) -> Uuid {
        let mut bytes = *b"laxity soft cuda";
        bytes[15] = self.ordinal as u8;
        Uuid(bytes)
    }
}

/// The server's program: where the environment says, or beside this library. `None`: beside the program, or in `PATH`.
fn server() -> Option<PathBuf> {
    if std::env::var_os(SERVER_VARIABLE).is_some() {
        return None;
    }
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: it writes to `info`, for an address within this library.
    if unsafe { libc::dladdr(server as *const libc::c_void, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: it was written, and the name is text that lives as long as the library.
    let name = unsafe { CStr::from_ptr(info.assume_init().dli_fname) };
    let library = PathBuf::from(name.to_str().ok()?).canonicalize().ok()?;
    // In `deps` where cargo tests.
    let mut folders = library.ancestors().skip(1).take(2).map(|folder| folder.join("laxity-softgpu-server"));
    folders.find(|path| path.is_file())
}

/// Tells the user, once of each text.
pub fn say(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if lock(&SAID).insert(text.to_owned()) {
        eprintln!("laxity soft CUDA: {text}");
    }
}
