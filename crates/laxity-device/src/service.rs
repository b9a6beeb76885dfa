//! How the threads of a soft GPU are scheduled that work on behalf of others.

use laxity_gpu::Follower;
use laxity_softgpu::SoftGpu;
use laxity_sys::scheduling::Attributes;

use crate::error::DeviceError;
use crate::options::{DeviceOptions, Service};

/// The threads of one soft GPU in this process, which are scheduled as the options say until this is dropped.
#[derive(Debug)]
pub(crate) struct Servants {
    _followers: Vec<Follower>,
}

impl Servants {
    /// Those of `gpu`, which the arbitration knows as `number`.
    pub fn engage(options: &DeviceOptions, number: u16, gpu: &SoftGpu) -> Result<Self, DeviceError> {
        let engines = gpu.engine_threads().map(|thread| (thread, options.engines));
        if options.scheduling.is_some() {
            // The thread that handles interrupts is a task of the system.
            for (thread, service) in engines {
                match service {
                    Service::Fixed(priority) => fix(thread, priority)?,
                    Service::Owners => fix(thread, HARDWARE_PRIORITY)?,
                    Service::AsIs => {}
                }
            }
            return Ok(Servants { _followers: Vec::new() });
        }
        let handling = gpu.handling_threads().map(|thread| (thread, options.handling));
        let mut followers = Vec::new();
        for (thread, service) in handling.into_iter().chain(engines) {
            match (service, &options.arbitration) {
                (Service::Fixed(priority), _) => fix(thread, priority)?,
                (Service::Owners, Some(arbitration)) => {
                    followers.push(arbitration.follow(number, thread).map_err(DeviceError::Follow)?);
                }
                (Service::Owners, None) | (Service::AsIs, _) => {}
            }
        }
        Ok(Servants { _followers: followers })
    }
}

/// Above all tasks of a system: a GPU does not wait for CPUs.
const HARDWARE_PRIORITY: u8 = 97;

/// Refuses priorities that there cannot be, before anything is opened.
pub(crate) fn check(options: &DeviceOptions) -> Result<(), DeviceError> {
    for service in [options.handling, options.engines] {
        match service {
            Service::Fixed(priority) if !(1..=99).contains(&priority) => {
                return Err(DeviceError::Schedule { priority, error: std::io::ErrorKind::InvalidInput.into() });
            }
            Service::Fixed(_) | Service::AsIs | Service::Owners => {}
        }
    }
    Ok(())
}

fn fix(thread: u32, priority: u8) -> Result<(), DeviceError> {
    let fixed = || Attributes::of(thread)?.fixed(priority)?.give_to(thread);
    fixed().map_err(|error| DeviceError::Schedule { priority, error })
}
