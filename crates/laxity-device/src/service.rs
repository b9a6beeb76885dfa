//! How the threads of a soft GPU are scheduled that work on behalf of others.

use laxity_softgpu::SoftGpu;
use laxity_sys::scheduling::Attributes;

use crate::error::DeviceError;
use crate::options::{DeviceOptions, Service};

/// The threads of one soft GPU in this process that are scheduled as the options say.
#[derive(Debug)]
pub(crate) struct Servants {}

impl Servants {
    /// Those of `gpu`, which the arbitration knows as `number`.
    pub fn engage(options: &DeviceOptions, _number: u16, gpu: &SoftGpu) -> Result<Self, DeviceError> {
        for thread in gpu.handling_threads() {
            schedule(options.handling, thread)?;
        }
        for thread in gpu.engine_threads() {
            schedule(options.engines, thread)?;
        }
        Ok(Servants {})
    }
}

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

fn schedule(service: Service, thread: u32) -> Result<(), DeviceError> {
    let Service::Fixed(priority) = service else { return Ok(()) };
    let fixed = || Attributes::of(thread)?.fixed(priority)?.give_to(thread);
    fixed().map_err(|error| DeviceError::Schedule { priority, error })
}
