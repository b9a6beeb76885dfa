//! What has the CPUs of a run and is no task of it: other threads of the machine and interrupts, by Linux's own records.
//!
//! ```text
//!   Linux --> [ ring of each CPU ] --> Follower --> what the CPU carries out, when it changes --> collector
//! ```
//!
//! The thread that collects the logs of the run reads the rings, too: it has no real-time priority, and no CPU of its own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;

use laxity_model::{CpuId, Instant, Nanos};
use laxity_sys::cpu_records::{self, CpuRecord, CpuRecords, Handling};
use laxity_sys::scheduling;
use laxity_trace::{Event, Outsider, OutsiderKind, ShortName};

/// A CPU may be so late to write down what it did before.
const LATE: Nanos = Nanos::from_millis(1);

/// Why Linux does not let this user see what other threads have CPUs, and the way out; nothing if it does.
pub fn threads_refused() -> Option<String> {
    let cpu = scheduling::usable_cpus().ok()?.first().copied()?;
    CpuRecords::open(cpu).err().map(|error| cpu_records::refusal(&error))
}

/// Why interrupts are not among what is seen, and the way out; nothing if they are, or no threads are seen either.
pub fn interrupts_refused() -> Option<String> {
    threads_refused().is_none().then(cpu_records::interrupts_refused).flatten()
}

/// The threads whose work a trace has as that of tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Insiders {
    pub threads: BTreeSet<u32>,
    /// All threads of these processes.
    pub processes: BTreeSet<u32>,
}

/// Follows the CPUs of a run.
#[derive(Debug)]
pub(crate) struct Outside {
    records: Vec<CpuRecords>,
    followers: Vec<Follower>,
    names: Names,
    pub insiders: Insiders,
    begin: Instant,
    /// What changed, in the order of time but for what a CPU wrote down late.
    changes: VecDeque<(Instant, Event)>,
}

impl Outside {
    /// Lets Linux record what these CPUs do, numbered as Linux does.
    ///
    /// # Errors
    /// What Linux refuses, and the way out.
    pub fn open(cpus: &[usize]) -> Result<Outside, String> {
        let records = cpus.iter().map(|&cpu| CpuRecords::open(cpu)).collect::<Result<Vec<_>, _>>();
        let records = records.map_err(|error| cpu_records::refusal(&error))?;
        let followers = (0..cpus.len()).map(|cpu| Follower::of(CpuId(cpu as u16))).collect();
        let names = Names::new(|thread| fs::read_to_string(format!("/proc/{thread}/comm")).ok());
        Ok(Outside {
            records,
            followers,
            names,
            insiders: Insiders::default(),
            begin: Instant::NEVER,
            changes: VecDeque::new(),
        })
    }

    /// What happened before `start` is left out.
    pub fn begin(&mut self, start: Instant) {
        self.begin = start;
    }

    /// Takes what Linux has recorded. Answers until when that is all, given that it is `now` or later.
    pub fn read(&mut self, now: Instant) -> Instant {
        let Outside { records, followers, names, insiders, begin, changes } = self;
        let mut news = Vec::new();
        for (records, follower) in records.iter_mut().zip(followers) {
            let mut tell = |at, event| news.push((at, event));
            while let Some((at, record)) = records.take() {
                follower.follow(at, record, *begin, names, insiders, &mut tell);
            }
            if now >= *begin {
                follower.begin(*begin, names, &mut tell);
            }
        }
        news.sort_by_key(|&(at, _)| at);
        changes.extend(news);
        Instant(now.0.saturating_sub(LATE.0))
    }

    /// When the next change was, of those that were read.
    pub fn next(&self) -> Option<Instant> {
        self.changes.front().map(|&(at, _)| at)
    }

    /// That change.
    pub fn take(&mut self) -> Option<Event> {
        self.changes.pop_front().map(|(_, event)| event)
    }

    /// How many records found no room.
    pub fn lost(&self) -> u64 {
        self.followers.iter().map(|follower| follower.lost).sum()
    }

    /// What to say to the user of a run that lost records.
    pub fn remark(&self) -> Option<String> {
        let lost = Some(self.lost()).filter(|&lost| lost > 0)?;
        Some(format!(
            "{lost} of Linux's records of CPUs were lost, and the trace lacks what other threads and interrupts did meanwhile; \
             give the machine a CPU more than the tasks need"
        ))
    }
}

/// Follows one CPU.
#[derive(Debug)]
struct Follower {
    cpu: CpuId,
    /// The thread that it carries out, if that is no task.
    thread: Option<u32>,
    /// What handles interrupts there, each on top of the one before.
    handlings: Vec<Handling>,
    /// What the trace says last.
    told: Option<Outsider>,
    has_begun: bool,
    lost: u64,
}

impl Follower {
    fn of(cpu: CpuId) -> Follower {
        Follower { cpu, thread: None, handlings: Vec::new(), told: None, has_begun: false, lost: 0 }
    }

    /// Takes a record of the CPU. Each change from `begin` on goes to `tell`.
    fn follow(
        &mut self,
        at: Instant,
        record: CpuRecord,
        begin: Instant,
        names: &mut Names,
        insiders: &Insiders,
        tell: &mut impl FnMut(Instant, Event),
    ) {
        if at >= begin {
            self.begin(begin, names, tell);
        }
        match record {
            CpuRecord::Switched { thread, process } => {
                let is_inside = insiders.threads.contains(&thread) || insiders.processes.contains(&process);
                self.thread = Some(thread).filter(|&thread| thread != 0 && !is_inside);
            }
            CpuRecord::Begins(handling) => self.handlings.push(handling),
            CpuRecord::Ends => _ = self.handlings.pop(),
            CpuRecord::Named { thread, name } => names.give(at, thread, name),
            CpuRecord::Forked { thread, parent } => return names.inherit(at, thread, parent),
            CpuRecord::Exited { thread } => return names.forget(at, thread),
            CpuRecord::Lost(records) => {
                self.thread = None;
                self.handlings.clear();
                if self.has_begun {
                    self.lost += records;
                    tell(at, Event::OutsidersLost { cpu: self.cpu, records: self.lost });
                }
            }
        }
        if self.has_begun {
            self.tell(at, names, tell);
        }
    }

    /// Says what the CPU carries out when the trace begins.
    fn begin(&mut self, begin: Instant, names: &mut Names, tell: &mut impl FnMut(Instant, Event)) {
        if !self.has_begun {
            self.has_begun = true;
            self.tell(begin, names, tell);
        }
    }

    fn tell(&mut self, at: Instant, names: &mut Names, tell: &mut impl FnMut(Instant, Event)) {
        let by = match (self.handlings.last(), self.thread) {
            (Some(handling), _) => Some(names.of_handling(handling, |event| tell(at, event))),
            (None, Some(thread)) => Some(names.of_thread(thread, |event| tell(at, event))),
            (None, None) => None,
        };
        if std::mem::replace(&mut self.told, by) != by {
            tell(at, Event::Outside { cpu: self.cpu, by });
        }
    }
}

/// A name that Linux recorded. Records of several CPUs come in no order: a thread may be named before it is known to have begun.
#[derive(Clone, Debug)]
struct Told {
    since: Instant,
    name: String,
    /// Its parent's: it may have got another one on a CPU that is not recorded.
    is_inherited: bool,
}

/// How outsiders are called, and their numbers in the trace.
struct Names {
    threads: BTreeMap<u32, Outsider>,
    handlings: BTreeMap<Handling, Outsider>,
    /// Of threads whose names Linux recorded, until they end.
    told: BTreeMap<u32, Told>,
    /// Asks Linux for the name of a thread.
    ask: fn(u32) -> Option<String>,
    numbers: u16,
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names").field("numbers", &self.numbers).finish_non_exhaustive()
    }
}

impl Names {
    fn new(ask: fn(u32) -> Option<String>) -> Names {
        Names { threads: BTreeMap::new(), handlings: BTreeMap::new(), told: BTreeMap::new(), ask, numbers: 0 }
    }

    fn of_thread(&mut self, thread: u32, tell: impl FnMut(Event)) -> Outsider {
        if let Some(&known) = self.threads.get(&thread) {
            return known;
        }
        let name = self.name(thread);
        let name = name.map_or("unknown".to_owned(), |name| name.trim_end().to_owned());
        let outsider = self.introduce(OutsiderKind::Thread, &name, Some(thread), tell);
        self.threads.insert(thread, outsider);
        outsider
    }

    fn of_handling(&mut self, handling: &Handling, tell: impl FnMut(Event)) -> Outsider {
        if let Some(&known) = self.handlings.get(handling) {
            return known;
        }
        let (kind, name) = match handling {
            Handling::Device(_, name) => (OutsiderKind::Interrupt, name.as_str()),
            Handling::Local(name) => (OutsiderKind::Interrupt, *name),
            Handling::Soft(name) => (OutsiderKind::SoftInterrupt, *name),
        };
        let outsider = self.introduce(kind, name, None, tell);
        self.handlings.insert(handling.clone(), outsider);
        outsider
    }

    /// Gives an outsider the next number, and tells its name.
    fn introduce(
        &mut self,
        kind: OutsiderKind,
        name: &str,
        thread: Option<u32>,
        mut tell: impl FnMut(Event),
    ) -> Outsider {
        let outsider = Outsider { kind, number: self.numbers };
        // All that come once there is no number left share the last.
        let (name, thread) = if self.numbers == u16::MAX { ("others", None) } else { (name, thread) };
        self.numbers = self.numbers.saturating_add(1);
        for (piece, name) in ShortName::pieces(name).into_iter().enumerate().take(usize::from(u8::MAX)) {
            tell(Event::OutsiderName { outsider, piece: piece as u8, name });
        }
        thread.into_iter().for_each(|thread| tell(Event::OutsiderThread { outsider, thread }));
        outsider
    }

    fn name(&self, thread: u32) -> Option<String> {
        let told = self.told.get(&thread);
        let own = told.filter(|told| !told.is_inherited).map(|told| told.name.clone());
        own.or_else(|| (self.ask)(thread)).or_else(|| Some(told?.name.clone()))
    }

    /// Whether something later than `at` is known of the thread.
    fn is_old(&self, at: Instant, thread: u32) -> bool {
        self.told.get(&thread).is_some_and(|told| told.since > at)
    }

    /// The thread is called so from now on: a trace calls it by another number.
    fn give(&mut self, at: Instant, thread: u32, name: String) {
        if !self.is_old(at, thread) {
            self.threads.remove(&thread);
            self.told.insert(thread, Told { since: at, name, is_inherited: false });
        }
    }

    /// A new thread is called as its parent.
    fn inherit(&mut self, at: Instant, thread: u32, parent: u32) {
        let name = self.name(parent);
        if !self.is_old(at, thread) {
            self.forget(at, thread);
            self.told.extend(name.map(|name| (thread, Told { since: at, name, is_inherited: true })));
        }
    }

    fn forget(&mut self, at: Instant, thread: u32) {
        if !self.is_old(at, thread) {
            self.threads.remove(&thread);
            self.told.remove(&thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: CpuId = CpuId(3);

    /// Follows `records` from time 10 on; thread 1 is a task's, as are those of process 9.
    fn told(records: impl IntoIterator<Item = (u64, CpuRecord)>) -> (Follower, Vec<(u64, Event)>) {
        let mut names = Names::new(|thread| (thread == 57).then(|| "kworker/0:2\n".to_owned()));
        let insiders = Insiders { threads: BTreeSet::from([1]), processes: BTreeSet::from([9]) };
        let (mut follower, mut told) = (Follower::of(CPU), Vec::new());
        for (at, record) in records {
            let mut tell = |at: Instant, event| told.push((at.0, event));
            follower.follow(Instant(at), record, Instant(10), &mut names, &insiders, &mut tell);
        }
        (follower, told)
    }

    fn switched(thread: u32) -> CpuRecord {
        CpuRecord::Switched { thread, process: thread }
    }

    fn outside(at: u64, by: Option<(OutsiderKind, u16)>) -> (u64, Event) {
        (at, Event::Outside { cpu: CPU, by: by.map(|(kind, number)| Outsider { kind, number }) })
    }

    fn called(at: u64, kind: OutsiderKind, number: u16, name: &str) -> (u64, Event) {
        let outsider = Outsider { kind, number };
        (at, Event::OutsiderName { outsider, piece: 0, name: ShortName::pieces(name)[0] })
    }

    fn number(at: u64, number: u16, thread: u32) -> (u64, Event) {
        (at, Event::OutsiderThread { outsider: Outsider { kind: OutsiderKind::Thread, number }, thread })
    }

    /// ```text
    ///   5    10   20   30   40   50   60        k thread 57, t a task, i interrupt, s soft interrupt, . idle
    ///   tttttkkkkkiiiiisssssiiiiikkkkk.....
    /// ```
    #[test]
    fn threads_and_interrupts_have_the_cpu_in_turn_and_tasks_do_not_show() {
        use OutsiderKind::{Interrupt, SoftInterrupt, Thread};
        let (device, soft) = (Handling::Device(4, "virtio0".to_owned()), Handling::Soft("NET_RX"));
        let (_, told) = told([
            (5, switched(1)),
            (8, switched(57)),
            (20, CpuRecord::Begins(device)),
            (30, CpuRecord::Begins(soft)),
            (40, CpuRecord::Ends),
            (50, CpuRecord::Ends),
            (60, switched(0)),
            (70, switched(1)),
            (75, CpuRecord::Switched { thread: 12, process: 9 }),
            (80, switched(57)),
            // More ends than begins, as of a handling that went on when recording began.
            (90, CpuRecord::Ends),
        ]);
        assert_eq!(
            told,
            [
                called(10, Thread, 0, "kworker/0:2"),
                number(10, 0, 57),
                outside(10, Some((Thread, 0))),
                called(20, Interrupt, 1, "virtio0"),
                outside(20, Some((Interrupt, 1))),
                called(30, SoftInterrupt, 2, "NET_RX"),
                outside(30, Some((SoftInterrupt, 2))),
                outside(40, Some((Interrupt, 1))),
                outside(50, Some((Thread, 0))),
                outside(60, None),
                outside(80, Some((Thread, 0))),
            ]
        );
    }

    #[test]
    fn a_thread_that_is_called_otherwise_is_another_outsider_and_a_new_one_is_called_as_its_parent() {
        use OutsiderKind::Thread;
        let named = |thread, name: &str| CpuRecord::Named { thread, name: name.to_owned() };
        let (_, told) = told([
            (10, switched(57)),
            (20, CpuRecord::Forked { thread: 60, parent: 57 }),
            (30, switched(60)),
            (35, named(60, "cc1")),
            (40, switched(57)),
            (50, switched(60)),
            (60, CpuRecord::Exited { thread: 60 }),
            (70, switched(60)),
        ]);
        let names: Vec<(u64, Event)> =
            told.iter().filter(|(_, event)| matches!(event, Event::OutsiderName { .. })).copied().collect();
        assert_eq!(
            names,
            [
                called(10, Thread, 0, "kworker/0:2"),
                called(30, Thread, 1, "kworker/0:2"),
                // From the moment on at which it says so.
                called(35, Thread, 2, "cc1"),
                // No record told the name of this other thread 60, and it has ended before Linux was asked.
                called(70, Thread, 3, "unknown"),
            ]
        );
    }

    #[test]
    fn a_thread_keeps_its_name_if_another_cpu_says_later_that_it_began_or_that_its_number_was_free() {
        let named = |name: &str| CpuRecord::Named { thread: 60, name: name.to_owned() };
        let (_, told) = told([
            (35, named("cc1")),
            (30, CpuRecord::Forked { thread: 60, parent: 57 }),
            (20, CpuRecord::Exited { thread: 60 }),
            (10, named("make")),
            (40, switched(60)),
        ]);
        assert_eq!(told[0], called(40, OutsiderKind::Thread, 0, "cc1"));
    }

    #[test]
    fn a_new_thread_that_was_named_on_another_cpu_is_called_as_linux_says() {
        // Linux knows thread 57 alone.
        let (_, told) = told([
            (10, CpuRecord::Named { thread: 60, name: "make".to_owned() }),
            (20, CpuRecord::Forked { thread: 57, parent: 60 }),
            (20, CpuRecord::Forked { thread: 61, parent: 60 }),
            (30, switched(57)),
            (40, switched(61)),
        ]);
        assert_eq!(told[0], called(30, OutsiderKind::Thread, 0, "kworker/0:2"));
        assert_eq!(told[3], called(40, OutsiderKind::Thread, 1, "make"));
    }

    #[test]
    fn what_had_the_cpu_while_records_were_lost_is_not_known() {
        use OutsiderKind::{Interrupt, Thread};
        let (follower, told) = told([
            (5, CpuRecord::Lost(3)),
            (10, switched(57)),
            (20, CpuRecord::Begins(Handling::Local("local timer"))),
            (30, CpuRecord::Lost(4)),
            (40, switched(57)),
        ]);
        assert_eq!(follower.lost, 4, "those before the trace begins do not matter");
        assert_eq!(
            told[2..],
            [
                outside(10, Some((Thread, 0))),
                called(20, Interrupt, 1, "local timer"),
                outside(20, Some((Interrupt, 1))),
                (30, Event::OutsidersLost { cpu: CPU, records: 4 }),
                outside(30, None),
                outside(40, Some((Thread, 0))),
            ]
        );
    }

    #[test]
    fn there_are_no_more_numbers_than_a_trace_has() {
        let mut names = Names::new(|_| None);
        names.numbers = u16::MAX - 1;
        let mut told = Vec::new();
        let last: Vec<u16> =
            (100..103).map(|thread| names.of_thread(thread, |event| told.push((0, event))).number).collect();
        assert_eq!(last, [u16::MAX - 1, u16::MAX, u16::MAX]);
        assert_eq!(told[2..], [called(0, OutsiderKind::Thread, u16::MAX, "others"); 2]);
    }
}
