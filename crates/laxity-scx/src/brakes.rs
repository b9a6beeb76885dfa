//! CPUs that a regulator of memory traffic throttles in the kernel (paper 004: BWLOCK++ and its Throttle Fair Scheduler).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_model::{Factor, Instant, Nanos};
use laxity_sys::shared_page::SharedPage;

use crate::client::ClientError;
use crate::layout::{Brake, IS_ALIVE};
use crate::settings::CPUS_MAX;

/// The longest time for which the scheduler throttles a CPU at once, as in `bpf/shares.h`.
pub const THROTTLE_MAX: Nanos = Nanos::from_millis(100);

/// What a regulator and the scheduler share, by [`Membership::brakes`](crate::Membership::brakes).
#[derive(Clone, Debug)]
pub struct Brakes {
    page: Arc<SharedPage>,
}

impl Brakes {
    pub(crate) fn of(page: Arc<SharedPage>) -> Brakes {
        Brakes { page }
    }

    /// Until `until`, [`THROTTLE_MAX`] from now at most, no thread that is no task has `cpu`, and none of its traffic counts. `thread`, by
    /// its number in Linux, is charged `punishment` times that time, as if it had executed; 0: the thread that the caller interrupted.
    ///
    /// To be called on that CPU by a thread of a real-time class: the CPU looks when it next changes hands, and so once the caller
    /// sleeps. It costs three stores. The throttle ends by itself; it cannot be taken back.
    ///
    /// # Errors
    /// [`ClientError::NotRunning`]: Linux schedules all threads now. [`ClientError::Refused`] for a CPU beyond those that the scheduler knows.
    pub fn throttle(&self, cpu: usize, until: Instant, thread: u32, punishment: Factor) -> Result<(), ClientError> {
        let beyond = || {
            let first = CPUS_MAX;
            ClientError::Refused(format!("CPU {cpu} is none that it throttles: it knows those below {first}"))
        };
        let brake = Brake::of(cpu).ok_or_else(beyond)?;
        if self.page.u32(IS_ALIVE).load(Ordering::Acquire) == 0 {
            return Err(ClientError::NotRunning);
        }
        self.page.u32(brake.thread()).store(thread, Ordering::Relaxed);
        // The kernel's side bounds it.
        let millionths = u32::try_from(punishment.0).unwrap_or(u32::MAX);
        self.page.u32(brake.punishment()).store(millionths, Ordering::Relaxed);
        self.page.u64(brake.until()).store(until.0, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::layout::PAGE;

    fn page() -> Arc<SharedPage> {
        let path = std::env::temp_dir().join(format!("laxity-brakes-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
        file.set_len(PAGE as u64).expect("a page");
        let page = Arc::new(SharedPage::map(&file, PAGE).expect("it is mapped"));
        let _ = std::fs::remove_file(path);
        page
    }

    #[test]
    fn the_kernel_finds_what_a_regulator_says_while_it_schedules() {
        let page = page();
        let brakes = Brakes::of(Arc::clone(&page));
        let throttle = |cpu| brakes.throttle(cpu, Instant(7_000), 42, Factor::whole(3));
        assert!(matches!(throttle(0), Err(ClientError::NotRunning)), "nothing reads the page");
        page.u32(IS_ALIVE).store(1, Ordering::Release);
        throttle(63).expect("it schedules");
        // `struct laxity_brakes`.
        let place = 64 + 63 * 32;
        assert_eq!(page.u64(place).load(Ordering::Relaxed), 7_000);
        assert_eq!(page.u32(place + 8).load(Ordering::Relaxed), 42);
        assert_eq!(page.u32(place + 12).load(Ordering::Relaxed), 3_000_000);
        let refused = throttle(64).expect_err("one more").to_string();
        assert!(refused.contains("CPU 64") && refused.contains("below 64"), "{refused}");
    }
}
