//! The tasks of all processes: numbers, pages and entries.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::Duration;

use laxity_model::{Instant, Nanos, PriorityRule};
use laxity_sys::clock::now;
use laxity_sys::cpu_mask::CpuMask;
use laxity_sys::process::parent_of;
use laxity_sys::scheduling::Attributes;
use laxity_trace::TaskKind;
use libbpf_rs::MapHandle;

use super::borrowed::{Borrowed, HandlingThread};
use super::object::{Kernel, Start};
use crate::layout::{COMPLETE_EACH, ENTRIES, JobCounters};
use crate::protocol::{Begin, InterruptRequest, InterruptStatus, NAME_MAX, Releases, TaskRequest, TaskStatus};
use crate::settings::Share;
use crate::trace::RecordedTask;

/// Numbers of tasks, and of pages, in the kernel (`LAXITY_TASKS` and `LAXITY_PAGES`).
const TASKS: usize = 256;
const PAGES: u32 = 64;
/// How often, and after what time again, a thread is looked at that is about to sleep.
const TRIES: usize = 100;
const LOOK: Duration = Duration::from_millis(1);

/// A task, also one that is no more, or a thread that handles interrupts.
struct Known {
    begin: Begin,
    process: u32,
    cluster: usize,
    page: u32,
    entry: usize,
    counters: JobCounters,
    is_over: bool,
    /// Of a thread that handles interrupts: how Linux scheduled it before.
    own: Option<Attributes>,
}

/// Of threads of the kernel, which have no page.
const NO_PAGE: u32 = u32::MAX;

/// A process's page. It stays until no task uses it.
struct Page {
    map: MapHandle,
    /// The connection that it came with; `None`: that has ended.
    member: Option<u64>,
    is_sent: bool,
}

/// All tasks, in the order in which they began.
pub struct Tasks {
    clusters: Vec<Vec<usize>>,
    rule: PriorityRule,
    /// In a trace a number stands for one task.
    is_traced: bool,
    known: Vec<Known>,
    /// Which task has a number, or had it last: an index of `known`.
    numbers: Vec<usize>,
    /// Numbers of tasks that are no more, and that no program in the kernel has to do with.
    free: Vec<usize>,
    pages: BTreeMap<u32, Page>,
}

/// What a thread that became a task is told.
pub struct Begun<'a> {
    /// Its place in its page.
    pub entry: usize,
    /// Its cluster.
    pub cluster: usize,
    /// Of its first job.
    pub release: Instant,
    /// Its page, if its process has not got it yet.
    pub page: Option<&'a MapHandle>,
}

impl Tasks {
    /// None yet.
    pub fn new(clusters: Vec<Vec<usize>>, rule: PriorityRule, is_traced: bool) -> Tasks {
        Tasks {
            clusters,
            rule,
            is_traced,
            known: Vec::new(),
            numbers: Vec::new(),
            free: Vec::new(),
            pages: BTreeMap::new(),
        }
    }

    /// Makes a thread of `process`, which asks by connection `member`, a task. An error is the reason.
    pub fn begin(&mut self, kernel: &Kernel, member: u64, process: u32, begin: Begin) -> Result<Begun<'_>, String> {
        // Its thread may just have left, to be another task.
        self.refresh(kernel);
        self.check(&begin)?;
        let is_own = match begin.is_program {
            true => parent_of(begin.thread) == Some(process),
            false => fs::metadata(format!("/proc/{process}/task/{}", begin.thread)).is_ok(),
        };
        if !is_own {
            return Err(format!("task {}: process {process} has no thread {}", begin.task.name, begin.thread));
        }
        let cluster = begin.task.cluster.unwrap_or_else(|| self.least_loaded());
        let page = self.page_of(kernel, member)?;
        let number = self.free_number(kernel)?;
        let taken: Vec<usize> =
            self.known.iter().filter(|it| !it.is_over && it.page == page).map(|it| it.entry).collect();
        let entry = (0..ENTRIES).find(|entry| !taken.contains(entry));
        let entry = entry.ok_or_else(|| format!("a process has at most {ENTRIES} tasks; start another process"))?;
        let cpus = CpuMask::of(self.clusters[cluster].iter().copied());
        cpus.give_to(begin.thread)
            .map_err(|error| format!("thread {} cannot have the CPUs of cluster {cluster}: {error}", begin.thread))?;
        let release = begin.task.release.unwrap_or_else(now);
        let start = Start {
            thread: begin.thread,
            number: number as u32,
            page,
            entry: entry as u32,
            cluster: cluster as u32,
            period: begin.task.period.0,
            deadline: begin.task.deadline.0,
            release: release.0,
            is_told: begin.task.releases != Releases::Periodic,
            is_complete: if begin.is_program { COMPLETE_EACH } else { 0 },
            due: match begin.task.releases {
                Releases::Told { due } | Releases::Tokens { due } => due.map_or(0, |due| due.0),
                Releases::Periodic | Releases::Events => 0,
            },
            level: self.level(&begin),
            budget: begin.task.budget.map_or(0, |budget| budget.0),
        };
        match kernel.begin(&start) {
            Ok(true) => {}
            Ok(false) => return Err(format!("thread {} ended meanwhile", begin.thread)),
            Err(error) => return Err(error.to_string()),
        }
        let thread = begin.thread;
        let counters = JobCounters { thread, ..JobCounters::default() };
        self.add(number, Known { begin, process, cluster, page, entry, counters, is_over: false, own: None });
        Ok(Begun { entry, cluster, release, page: self.unsent(page) })
    }

    fn add(&mut self, number: usize, known: Known) {
        if number == self.numbers.len() {
            self.numbers.push(self.known.len());
        } else {
            self.numbers[number] = self.known.len();
        }
        self.known.push(known);
    }

    /// Makes a thread of the kernel, of which `borrowed` then knows, or one of `process`, which asks, handle interrupts for tasks. An error
    /// is the reason why it does not.
    pub fn handle(
        &mut self,
        kernel: &Kernel,
        borrowed: &mut Borrowed,
        process: u32,
        request: &InterruptRequest,
    ) -> Result<InterruptStatus, String> {
        self.refresh(kernel);
        let thread = asleep(request.thread, process)?;
        let has_cpu = |cpus: &Vec<usize>| cpus.contains(&thread.cpu);
        let cluster = request.cluster.or_else(|| self.clusters.iter().position(has_cpu)).ok_or_else(|| {
            format!("{thread} was last on CPU {}, which no task has; say which cluster it works for", thread.cpu)
        })?;
        let cpus = self.clusters.get(cluster);
        let cpus = cpus.ok_or_else(|| format!("cluster {cluster}, and there are {}, from 0", self.clusters.len()))?;
        let cpus = CpuMask::of(cpus.iter().copied());
        let before = CpuMask::of_thread(thread.number).map_err(|error| format!("{thread}: {error}"))?;
        // Linux keeps some of its threads on their CPUs for good, such as ksoftirqd.
        let moves = before != cpus;
        let give_cpus = || {
            match moves {
            true => cpus.give_to(thread.number).map_err(|error| {
                let [own, wanted] = [before, cpus].map(|cpus| cpus.cpus().map(|cpu| cpu.to_string()).collect::<Vec<_>>());
                let (own, wanted) = (own.join(","), wanted.join(","));
                format!(
                    "{thread} may use CPUs {own}, and Linux does not let it have those of cluster {cluster}, {wanted} ({error}); it \
                     can work in a cluster of CPUs {own}"
                )
            }),
            false => Ok(()),
        }
        };
        if let Some((number, own)) = self.handler(&thread, cluster) {
            // Linux takes them away from it when the affinity of its interrupt changes.
            give_cpus()?;
            return Ok(self.interrupt(kernel, number, own));
        }
        let Share { budget, period } = request.server;
        let task = TaskRequest {
            budget: Some(budget),
            priority: request.priority,
            cluster: Some(cluster),
            ..TaskRequest::periodic(&thread.name, period, budget)
        };
        let begin = Begin { thread: thread.number, is_program: false, task };
        self.check(&begin)?;
        let number = self.free_number(kernel)?;
        let own = match thread.process {
            None => borrowed.keep(&thread, moves.then_some(&before))?,
            // It schedules itself again when the scheduler has ended, as it does its other threads.
            Some(_) => Attributes::of(thread.number).map_err(|error| format!("{thread}: {error}"))?,
        };
        give_cpus()?;
        let start = Start {
            thread: thread.number,
            number: number as u32,
            page: NO_PAGE,
            entry: 0,
            cluster: cluster as u32,
            period: period.0,
            deadline: period.0,
            release: 0,
            is_told: false,
            is_complete: 0,
            due: 0,
            level: self.level(&begin),
            budget: budget.0,
        };
        match kernel.handle(&start) {
            Ok(true) => {}
            Ok(false) => return Err(format!("{thread} ended meanwhile")),
            Err(error) => return Err(error.to_string()),
        }
        // From now on it comes to the scheduler, which knows it.
        own.ordinary().give_to(thread.number).map_err(|error| format!("{thread} keeps its class: {error}"))?;
        let counters = JobCounters { thread: thread.number, ..JobCounters::default() };
        let (process, page, entry, is_over) = (thread.process.unwrap_or(0), NO_PAGE, 0, false);
        self.add(number, Known { begin, process, cluster, page, entry, counters, is_over, own: Some(own) });
        Ok(self.interrupt(kernel, number, own))
    }

    /// The number of a thread that handles interrupts for that cluster already, and how Linux scheduled it before.
    fn handler(&self, thread: &HandlingThread, cluster: usize) -> Option<(usize, Attributes)> {
        let is_it = |known: &Known| !known.is_over && known.begin.thread == thread.number && known.cluster == cluster;
        let number = self.numbers.iter().position(|&task| is_it(&self.known[task]))?;
        Some((number, self.known[self.numbers[number]].own?))
    }

    /// The page of connection `member`, if its process has not got it yet. An error is the reason why it has none.
    pub fn prepare(&mut self, kernel: &Kernel, member: u64) -> Result<Option<&MapHandle>, String> {
        let page = self.page_of(kernel, member)?;
        Ok(self.unsent(page))
    }

    /// A page that its process has not got yet, and gets now.
    fn unsent(&mut self, page: u32) -> Option<&MapHandle> {
        let page = self.pages.get_mut(&page).expect("it has just been found");
        let is_new = !std::mem::replace(&mut page.is_sent, true);
        is_new.then_some(&page.map)
    }

    fn check(&self, begin: &Begin) -> Result<(), String> {
        let Begin { thread, is_program: _, task: TaskRequest { name, period, deadline, wcet, budget, cluster, .. } } =
            begin;
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(format!("a name of {} bytes, and it must have 1 to {NAME_MAX}", name.len()));
        }
        const YEAR: Nanos = Nanos::from_secs(365 * 24 * 3600);
        for (what, span) in [("period", period), ("deadline", deadline)] {
            if span.is_zero() || *span > YEAR {
                return Err(format!("task {name}: a {what} of {} ns, and it must be from 1 ns to a year", span.0));
            }
        }
        if wcet > period.min(deadline) {
            return Err(format!(
                "task {name}: wcet {} ns exceeds {} ns, the lesser of its period and its deadline; no policy can meet it",
                wcet.0,
                period.min(deadline).0
            ));
        }
        if let Some(budget) = budget.filter(|budget| budget.is_zero() || budget > period) {
            return Err(format!(
                "task {name}: a budget of {} ns, and it must be from 1 ns to its period of {} ns",
                budget.0, period.0
            ));
        }
        if let Some(cluster) = cluster.filter(|&cluster| cluster >= self.clusters.len()) {
            return Err(format!("task {name}: cluster {cluster}, and there are {}, from 0", self.clusters.len()));
        }
        if self.known.iter().any(|it| !it.is_over && it.begin.thread == *thread) {
            return Err(format!("thread {thread} is a task already"));
        }
        Ok(())
    }

    fn free_number(&mut self, kernel: &Kernel) -> Result<usize, String> {
        if self.numbers.len() < TASKS {
            return Ok(self.numbers.len());
        }
        if self.free.is_empty() && !self.is_traced {
            let is_over = |&number: &usize| self.known[self.numbers[number]].is_over;
            let free: Vec<usize> = (0..TASKS).filter(is_over).collect();
            // One that is no more may still have a program of the kernel on its way to say so.
            if let Some((&page, Page { map, .. })) = self.pages.first_key_value() {
                kernel.put_page(page, map).map_err(|error| error.to_string())?;
                self.free = free;
            }
        }
        self.free.pop().ok_or_else(|| match self.is_traced {
            true => format!("{TASKS} tasks began, and a trace holds no more"),
            false => format!("there are {TASKS} tasks, and the kernel's side holds no more"),
        })
    }

    /// The cluster whose tasks ask for the least of each of its CPUs.
    fn least_loaded(&self) -> usize {
        // In millionths of a CPU; deadlines and periods are a year at most, so that no product overflows.
        let load = |cluster: &usize| {
            let tasks = self.known.iter().filter(|it| !it.is_over && it.cluster == *cluster);
            let sum: u128 =
                tasks.map(|it| u128::from(it.begin.task.wcet.0) * 1_000_000 / u128::from(it.begin.task.period.0)).sum();
            sum / self.clusters[*cluster].len() as u128
        };
        (0..self.clusters.len()).min_by_key(load).expect("there is a cluster")
    }

    /// The page that came with this connection, or a new one.
    fn page_of(&mut self, kernel: &Kernel, member: u64) -> Result<u32, String> {
        if let Some((&number, _)) = self.pages.iter().find(|(_, page)| page.member == Some(member)) {
            return Ok(number);
        }
        let number = (0..PAGES).find(|number| !self.pages.contains_key(number));
        let number =
            number.ok_or_else(|| format!("{PAGES} processes have tasks, and the kernel's side holds no more"))?;
        let map = kernel.add_page(number).map_err(|error| error.to_string())?;
        self.pages.insert(number, Page { map, member: Some(member), is_sent: false });
        Ok(number)
    }

    fn level(&self, begin: &Begin) -> u64 {
        match self.rule {
            PriorityRule::RateMonotonic => begin.task.period.0,
            PriorityRule::DeadlineMonotonic => begin.task.deadline.0,
            // Level 0 is above all jobs.
            PriorityRule::Given => begin.task.priority.saturating_add(1),
            PriorityRule::Edf | PriorityRule::Fair => 1,
        }
    }

    /// A connection has ended. Its tasks go on until their threads end or leave.
    pub fn forget(&mut self, member: u64) {
        for page in self.pages.values_mut().filter(|page| page.member == Some(member)) {
            page.member = None;
        }
    }

    /// Asks the kernel what the tasks did, and gives up pages that no task uses.
    pub fn refresh(&mut self, kernel: &Kernel) {
        for (number, &task) in self.numbers.iter().enumerate() {
            let known = &mut self.known[task];
            if known.is_over {
                continue;
            }
            if let Some(counters) = kernel.counters(number as u32) {
                known.is_over = counters.thread != known.begin.thread;
                known.counters = counters;
            }
        }
        let is_used = |number: u32| self.known.iter().any(|it| !it.is_over && it.page == number);
        let unused: Vec<u32> = self
            .pages
            .iter()
            .filter(|(number, page)| page.member.is_none() && !is_used(**number))
            .map(|(&number, _)| number)
            .collect();
        for number in unused {
            kernel.remove_page(number);
            self.pages.remove(&number);
        }
    }

    /// What each task did, those that are no more left out.
    pub fn status(&self, kernel: &Kernel) -> Vec<TaskStatus> {
        let numbered = self.numbers.iter().enumerate().map(|(number, &task)| (number, &self.known[task]));
        let status = |(number, known): (usize, &Known)| {
            let Known { begin, counters, .. } = known;
            TaskStatus {
                name: begin.task.name.clone(),
                process: known.process,
                thread: begin.thread,
                cluster: known.cluster,
                period: begin.task.period,
                deadline: begin.task.deadline,
                linked: self.linked(kernel, number),
                released: counters.released,
                completed: counters.completed,
                late: counters.late,
                throttled: counters.throttled,
                response_max: Nanos(counters.response_max),
                tardiness_max: Nanos(counters.tardiness_max),
            }
        };
        numbered.filter(|(_, known)| !known.is_over && known.own.is_none()).map(status).collect()
    }

    /// What each thread that handles interrupts did, those that are no more left out.
    pub fn interrupts(&self, kernel: &Kernel) -> Vec<InterruptStatus> {
        let numbered = self.numbers.iter().enumerate().map(|(number, &task)| (number, &self.known[task]));
        let own = |(number, known): (usize, &Known)| Some((number, known.own.filter(|_| !known.is_over)?));
        numbered.filter_map(own).map(|(number, own)| self.interrupt(kernel, number, own)).collect()
    }

    fn interrupt(&self, kernel: &Kernel, number: usize, own: Attributes) -> InterruptStatus {
        let Known { begin, cluster, counters, .. } = &self.known[self.numbers[number]];
        let TaskRequest { name, period, wcet, .. } = &begin.task;
        let owner = counters.owner.and_then(|owner| self.numbers.get(owner as usize));
        InterruptStatus {
            name: name.clone(),
            thread: begin.thread,
            number: number as u32,
            cluster: *cluster,
            own_priority: own.fixed_priority(),
            server: Share { budget: *wcet, period: *period },
            linked: self.linked(kernel, number),
            owner: owner.map(|&owner| self.known[owner].begin.task.name.clone()),
            handled: counters.released,
            owned: counters.owned,
            throttled: counters.throttled,
            response_max: Nanos(counters.response_max),
        }
    }

    /// The CPU that task `number` is linked to.
    fn linked(&self, kernel: &Kernel, number: usize) -> Option<usize> {
        let cluster = self.known[self.numbers[number]].cluster;
        let local = kernel.linked(cluster as u32, number as u32)?;
        self.clusters[cluster].get(local).copied()
    }

    /// The CPUs of each cluster.
    pub fn clusters(&self) -> &[Vec<usize>] {
        &self.clusters
    }

    /// All jobs of all tasks so far: completed, and late.
    pub fn totals(&self) -> (usize, u64, u64) {
        let tasks = || self.known.iter().filter(|it| it.own.is_none());
        let sum = |count: fn(&JobCounters) -> u32| tasks().map(|it| u64::from(count(&it.counters))).sum();
        (tasks().count(), sum(|it| it.completed), sum(|it| it.late))
    }

    /// The tasks by number, for a trace.
    pub fn recorded(&self) -> Vec<RecordedTask> {
        let task = |&task: &usize| {
            let Known { begin, cluster, own, .. } = &self.known[task];
            RecordedTask {
                name: begin.task.name.clone(),
                period: begin.task.period,
                deadline: begin.task.deadline,
                wcet: begin.task.wcet,
                cluster: *cluster,
                level: self.level(begin),
                kind: match (own, begin.task.releases) {
                    (Some(_), _) => TaskKind::Thread,
                    (None, Releases::Events | Releases::Tokens { .. }) => TaskKind::Event,
                    (None, Releases::Periodic | Releases::Told { .. }) => TaskKind::Task,
                },
                has_budget: begin.task.budget.is_some(),
            }
        };
        self.numbers.iter().map(task).collect()
    }
}

/// The thread of that number. One of `process`, which asks for it, has sent the question, and is about to sleep until the answer: from when it
/// handles interrupts until it sleeps no event would say that it runs.
fn asleep(number: u32, process: u32) -> Result<HandlingThread, String> {
    for _ in 0..TRIES {
        let thread = HandlingThread::of(number, process)?;
        if thread.process.is_none() || thread.sleeps {
            return Ok(thread);
        }
        thread::sleep(LOOK);
    }
    Err(format!(
        "thread {number} of process {process} does not sleep, and a thread that is to handle interrupts must when it begins"
    ))
}
