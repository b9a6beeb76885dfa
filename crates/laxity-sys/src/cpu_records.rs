//! Linux's records of what a CPU does: which thread it switches to, and which interrupts it handles: `perf_event_open(2)`.
//!
//! Linux writes them into a ring of memory that this process reads when it likes; what does not fit is counted. The ring goes
//! with the process, however that ends.
//!
//! Needs `CAP_PERFMON`, or `kernel.perf_event_paranoid` of at most 0; for interrupts -1, and tracefs.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use laxity_model::Instant;
use perf_event::events::{Software, Tracepoint};
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};

/// `PERF_EVENT_IOC_SET_OUTPUT` of Linux: `_IO('$', 5)`.
const SET_OUTPUT: libc::c_ulong = 0x2405;
/// The ring of a CPU: a second of ten thousand switches. It is what Linux grants a user without asking for locked memory.
const RING: usize = 512 << 10;
/// With less there would be gaps whenever the reader is late.
const RING_MIN: usize = 32 << 10;

/// Kinds of records, the misc flag of a switch away, and the length of what Linux puts behind each record: thread and time.
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const SWITCH_CPU_WIDE: u32 = 15;
const SWITCH_OUT: u16 = 1 << 13;
const BEHIND: usize = 16;

/// Where Linux shows its tracepoints.
const FOLDERS: [&str; 2] = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"];

/// The records of one CPU.
pub struct CpuRecords {
    sampler: Sampler,
    /// Tracepoints that write into the same ring, by the number that their records begin with.
    points: Vec<(u16, Point)>,
    /// They are open as long as this is.
    _counters: Vec<Counter>,
    last: Instant,
}

/// What a CPU did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuRecord {
    /// It carries out the thread from now on; thread 0 is none.
    Switched {
        /// The number of the thread.
        thread: u32,
        /// That of its process.
        process: u32,
    },
    /// It handles an interrupt from now on, on top of what it does.
    Begins(Handling),
    /// The handling that began last ends.
    Ends,
    /// The thread is called so from now on.
    Named {
        /// The number of the thread.
        thread: u32,
        /// Its name.
        name: String,
    },
    /// The thread begins, and is called as its parent.
    Forked {
        /// The number of the thread.
        thread: u32,
        /// The thread that made it.
        parent: u32,
    },
    /// The thread ends.
    Exited {
        /// The number of the thread.
        thread: u32,
    },
    /// So many records found no room.
    Lost(u64),
}

/// What handles an interrupt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Handling {
    /// The handler of a device, by the number of the interrupt and the name of the handler.
    Device(i32, String),
    /// The CPU's own timer, or another CPU.
    Local(&'static str),
    /// What Linux does after interrupts, by the name of the kind.
    Soft(&'static str),
}

/// A tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    Device,
    Local(&'static str),
    Soft,
    End,
}

/// Tracepoints in pairs, begin and end; what begins; and the fields that are read, as Linux describes them.
const POINTS: [(&str, &str, Point, &str); 5] = [
    ("irq/irq_handler_entry", "irq/irq_handler_exit", Point::Device, "__data_loc char[] name;\toffset:12;"),
    ("irq/softirq_entry", "irq/softirq_exit", Point::Soft, "unsigned int vec;\toffset:8;"),
    ("irq_vectors/local_timer_entry", "irq_vectors/local_timer_exit", Point::Local("local timer"), ""),
    ("irq_vectors/reschedule_entry", "irq_vectors/reschedule_exit", Point::Local("reschedule"), ""),
    (
        "irq_vectors/call_function_single_entry",
        "irq_vectors/call_function_single_exit",
        Point::Local("function call"),
        "",
    ),
];

/// Kinds of soft interrupts, in the order of Linux.
const SOFT: [&str; 10] = ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

impl fmt::Debug for CpuRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuRecords").field("points", &self.points).finish_non_exhaustive()
    }
}

impl CpuRecords {
    /// Lets Linux record what `cpu` does from now on; interrupts as far as [`interrupts_refused`] does not say otherwise.
    ///
    /// # Errors
    /// What Linux refuses: see [`refusal`] for the way out.
    pub fn open(cpu: usize) -> io::Result<CpuRecords> {
        let mut ring = RING;
        let mut sampler = loop {
            // Only its switches are recorded, which need no view into Linux itself.
            let mut builder = of_cpu(cpu, Software::DUMMY);
            builder.context_switch(true).comm(true).task(true).exclude_kernel(true);
            match builder.build()?.sampled(ring) {
                Ok(sampler) => break sampler,
                Err(_) if ring > RING_MIN => ring /= 2,
                Err(error) => return Err(error),
            }
        };
        let (mut points, mut counters) = (Vec::new(), Vec::new());
        for (begin, end, point, field) in POINTS {
            let (Some(begin), Some(end)) = (tracepoint(begin, field), tracepoint(end, "")) else { continue };
            // Without the end of a handling its begin says nothing.
            let both = follow(cpu, begin, &sampler).and_then(|first| Ok([first, follow(cpu, end, &sampler)?]));
            if let Ok(both) = both {
                counters.extend(both);
                points.extend([(begin as u16, point), (end as u16, Point::End)]);
            }
        }
        sampler.enable()?;
        counters.iter_mut().try_for_each(|counter: &mut Counter| counter.enable())?;
        Ok(CpuRecords { sampler, points, _counters: counters, last: Instant::ZERO })
    }

    /// Whether interrupts are among the records.
    pub fn have_interrupts(&self) -> bool {
        !self.points.is_empty()
    }

    /// The oldest record that was not taken, and when it happened, on the clock of [`crate::clock::now`].
    pub fn take(&mut self) -> Option<(Instant, CpuRecord)> {
        loop {
            let record = self.sampler.next_record()?;
            let bytes = record.to_contiguous();
            let Some((at, read)) = read(record.ty(), record.misc(), &bytes, &self.points) else { continue };
            drop(bytes);
            drop(record);
            // An interrupt may be recorded between the reading of the clock for a record and that record itself.
            self.last = self.last.max(at);
            return Some((self.last, read));
        }
    }
}

/// A counter of `cpu` whose records have threads and times.
fn of_cpu<E: perf_event::events::Event>(cpu: usize, event: E) -> Builder<'static> {
    let mut builder = Builder::new(event);
    builder.any_pid().one_cpu(cpu).clockid(Clock::MONOTONIC).sample_id_all(true).wakeup_watermark(RING / 2);
    builder.sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::RAW);
    builder
}

/// Lets the tracepoint write into the ring of `into`. It is not yet enabled.
fn follow(cpu: usize, id: u64, into: &Sampler) -> io::Result<Counter> {
    let mut builder = of_cpu(cpu, Tracepoint::with_id(id));
    builder.include_kernel().sample_period(1);
    let counter = builder.build()?;
    // SAFETY: both descriptors are those of counters, which are open; Linux keeps the ring as long as one writes into it.
    match unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT, into.as_raw_fd()) } {
        0 => Ok(counter),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The number of a tracepoint that has `field`, if Linux shows it.
fn tracepoint(name: &str, field: &str) -> Option<u64> {
    let folder = FOLDERS.iter().find(|folder| fs::metadata(format!("{folder}/{name}/id")).is_ok())?;
    let format = fs::read_to_string(format!("{folder}/{name}/format")).ok()?;
    let id: u64 = fs::read_to_string(format!("{folder}/{name}/id")).ok()?.trim().parse().ok()?;
    // Records begin with 16 bits of it.
    (format.contains(field) && id <= u64::from(u16::MAX)).then_some(id)
}

/// What the bytes of a record say, behind its header; nothing if they are of no use.
fn read(kind: u32, misc: u16, bytes: &[u8], points: &[(u16, Point)]) -> Option<(Instant, CpuRecord)> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    if kind == SAMPLE {
        // Process, thread, time; the length of the rest, and the rest.
        let (at, data) = (Instant(long(8)?), bytes.get(20..)?);
        let number = u16::from_ne_bytes(data.get(..2)?.try_into().ok()?);
        let (_, point) = points.iter().find(|(id, _)| *id == number)?;
        return Some((at, sample(*point, data)?));
    }
    let behind = bytes.len().checked_sub(BEHIND)?;
    let (process, thread, at) = (word(behind)?, word(behind + 4)?, Instant(long(behind + 8)?));
    let record = match kind {
        SWITCH_CPU_WIDE if misc & SWITCH_OUT == 0 => CpuRecord::Switched { thread, process },
        COMM => CpuRecord::Named { thread: word(4)?, name: text(bytes.get(8..behind)?) },
        FORK => CpuRecord::Forked { thread: word(8)?, parent: word(12)? },
        EXIT => CpuRecord::Exited { thread: word(8)? },
        LOST => CpuRecord::Lost(long(8)?),
        _ => return None,
    };
    Some((at, record))
}

/// What the record of a tracepoint says.
fn sample(point: Point, data: &[u8]) -> Option<CpuRecord> {
    let word = |at: usize| Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?));
    Some(match point {
        Point::Device => {
            // Where the name is, and how long, in one word.
            let place = word(12)?;
            let name = text(data.get((place & 0xffff) as usize..)?.get(..(place >> 16) as usize)?);
            CpuRecord::Begins(Handling::Device(word(8)? as i32, name))
        }
        Point::Soft => CpuRecord::Begins(Handling::Soft(SOFT.get(word(8)? as usize).copied().unwrap_or("unknown"))),
        Point::Local(name) => CpuRecord::Begins(Handling::Local(name)),
        Point::End => CpuRecord::Ends,
    })
}

/// The bytes before the first that is 0.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}

/// Why Linux does not let [`CpuRecords::open`] do its work, and the way out.
pub fn refusal(error: &io::Error) -> String {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    refusal_at(error, paranoid.as_deref().map(str::trim))
}

/// [`refusal`] where `kernel.perf_event_paranoid` is `level`.
fn refusal_at(error: &io::Error, level: Option<&str>) -> String {
    match (error.kind(), level) {
        (io::ErrorKind::PermissionDenied, Some(level)) if level.parse().is_ok_and(|level: i32| level <= 0) => format!(
            "Linux does not let this process record what CPUs do though kernel.perf_event_paranoid is {level}: something \
             forbids perf_event_open(2), as containers do; allow it there, or run outside"
        ),
        (io::ErrorKind::PermissionDenied, Some(level)) => format!(
            "Linux does not let this user record what CPUs do: kernel.perf_event_paranoid is {level}, where at most 0 is \
             needed; `sysctl kernel.perf_event_paranoid=-1`, or give CAP_PERFMON"
        ),
        (io::ErrorKind::NotFound | io::ErrorKind::Unsupported, _) | (_, None) => {
            format!("this Linux cannot record what CPUs do ({error}); it needs CONFIG_PERF_EVENTS")
        }
        _ => format!("Linux cannot record what CPUs do: {error}"),
    }
}

/// Why interrupts are not recorded, and the way out; nothing if all that this machine has are.
pub fn interrupts_refused() -> Option<String> {
    let has_points = FOLDERS.iter().any(|folder| fs::metadata(format!("{folder}/irq/irq_handler_entry/id")).is_ok());
    if !has_points {
        return Some(
            "interrupts are not recorded: Linux shows no tracepoints to this user; `mount -t tracefs tracefs \
             /sys/kernel/tracing` and permission to read it"
                .to_owned(),
        );
    }
    let cpu = crate::scheduling::usable_cpus().ok()?.first().copied()?;
    match CpuRecords::open(cpu) {
        Ok(records) if !records.have_interrupts() => Some(
            "interrupts are not recorded: Linux does not let this user follow tracepoints; `sysctl \
             kernel.perf_event_paranoid=-1`, or give CAP_PERFMON"
                .to_owned(),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use laxity_model::Nanos;

    use super::*;
    use crate::clock;
    use crate::scheduling::{current_thread, pin, usable_cpus};

    /// A thread that computes for 5 ms between two pauses has the CPU for about that long, by the clock of the program.
    #[test]
    fn the_time_that_a_thread_has_a_cpu_is_that_of_the_programs_clock() {
        let cpu = usable_cpus().expect("this process has CPUs")[0];
        let mut records = match CpuRecords::open(cpu) {
            Ok(records) => records,
            Err(error) => return laxity_testing::skip(refusal(&error)),
        };
        let computing = std::thread::spawn(move || {
            pin(cpu).expect("it may be there");
            // There it is given its name, too.
            fs::write("/proc/thread-self/comm", "computing").expect("it may call itself as it likes");
            std::thread::sleep(Duration::from_millis(2));
            let (begin, cpu_time) = (clock::now(), clock::thread_cpu_time());
            while clock::thread_cpu_time().0 - cpu_time.0 < 5_000_000 {}
            let end = clock::now();
            std::thread::sleep(Duration::from_millis(2));
            (current_thread(), begin, end)
        });
        let (thread, begin, end) = computing.join().expect("it computes");
        let all: Vec<(Instant, CpuRecord)> = std::iter::from_fn(|| records.take()).collect();
        assert!(all.windows(2).all(|pair| pair[0].0 <= pair[1].0), "they are in the order of time");
        let mut had = Nanos::ZERO;
        let mut since = None;
        for (at, record) in &all {
            if let CpuRecord::Switched { thread: next, .. } = *record {
                if let Some(since) = std::mem::take(&mut since) {
                    let at: Instant = *at;
                    had += at.min(end).saturating_since(begin.max(since));
                }
                since = (next == thread).then_some(*at);
            }
        }
        assert!(had.0 >= 4_900_000 && had <= end.saturating_since(begin), "{had} of 5 ms: {all:?}");
        let name = CpuRecord::Named { thread, name: "computing".to_owned() };
        assert!(all.iter().any(|(_, record)| *record == name), "its name is told when it is given: {all:?}");
    }

    #[test]
    fn handlings_of_interrupts_are_told_as_they_begin_and_end() {
        let cpu = usable_cpus().expect("this process has CPUs")[0];
        let mut records = match CpuRecords::open(cpu) {
            Ok(records) if records.have_interrupts() => records,
            Ok(_) => return laxity_testing::skip(interrupts_refused().unwrap_or_default()),
            Err(error) => return laxity_testing::skip(refusal(&error)),
        };
        let waiting = std::thread::spawn(move || {
            pin(cpu).expect("it may be there");
            (0..50).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
        });
        waiting.join().expect("it waits");
        let (mut depth, mut begun) = (0i32, 0);
        while let Some((_, record)) = records.take() {
            match record {
                CpuRecord::Begins(_) => (depth, begun) = (depth + 1, begun + 1),
                CpuRecord::Ends => depth = (depth - 1).max(0),
                CpuRecord::Lost(count) => panic!("{count} records lost where there are few"),
                _ => {}
            }
            assert!(depth <= 3, "a handling that began has ended, or another interrupts it");
        }
        assert!(begun >= 10, "timers wake the thread up: {begun}");
    }

    #[test]
    fn refusals_say_what_is_set_and_the_way_out() {
        let denied = io::Error::from_raw_os_error(libc::EACCES);
        let text = refusal_at(&denied, Some("2"));
        assert!(
            text.contains("kernel.perf_event_paranoid is 2, where at most 0 is needed") && text.contains("CAP_PERFMON")
        );
        let text = refusal_at(&io::Error::from_raw_os_error(libc::EPERM), Some("-1"));
        assert!(text.contains("is -1: something forbids perf_event_open(2)"), "{text}");
        let text = refusal_at(&io::Error::from_raw_os_error(libc::ENOENT), None);
        assert!(text.contains("CONFIG_PERF_EVENTS"), "{text}");
    }

    #[test]
    fn records_are_read_as_linux_writes_them() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        // The thread that was there; process, thread, and time of the one that comes.
        let switched = words(&[5, 6, 7, 8, 99, 0]);
        let expected = CpuRecord::Switched { thread: 8, process: 7 };
        assert_eq!(read(SWITCH_CPU_WIDE, 0, &switched, &[]), Some((Instant(99), expected)));
        assert_eq!(read(SWITCH_CPU_WIDE, SWITCH_OUT, &switched, &[]), None);
        let mut named = words(&[7, 8]);
        named.extend(b"cc1\0\0\0\0\0");
        named.extend(words(&[7, 8, 99, 0]));
        let expected = CpuRecord::Named { thread: 8, name: "cc1".to_owned() };
        assert_eq!(read(COMM, 0, &named, &[]), Some((Instant(99), expected)));
        // Process, thread, time, length; number and rest of what all have, interrupt, place of the name, name.
        let mut device = words(&[7, 8, 99, 0, 24, 225, 0, 11, 8 << 16 | 16]);
        device.extend(b"virtio0\0");
        let expected = CpuRecord::Begins(Handling::Device(11, "virtio0".to_owned()));
        assert_eq!(read(SAMPLE, 0, &device, &[(225, Point::Device)]), Some((Instant(99), expected)));
        for length in 0..device.len() {
            // Cut off anywhere it is no record, and no panic.
            assert!(read(SAMPLE, 0, &device[..length], &[(225, Point::Device)]).is_none(), "{length} bytes");
        }
    }
}
