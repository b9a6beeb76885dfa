//! `check` where tasks share resources and GPUs, on workloads small enough to work out by hand.

use laxity_analysis::check::{Accounting, Options, Report, Status, Term, Terms, check};
use laxity_analysis::klmirqd::{Blocking, Costs, GpuTask, Handling, blocking, inflate, interrupts};
use laxity_model::{
    CpuId, ExecutionTime, Factor, Gpu, GpuArbitration, GpuOperation, GpuSync, GpuWork, InterruptHandling, Nanos,
    OverheadProfile, Platform, Resource, ResourceProtocol, Step, Task, ThreadPriority, TokenHold, Waiting, Workload,
};

fn time(wcet: u64) -> ExecutionTime {
    ExecutionTime::constant(Nanos(wcet))
}

fn kernel(length: u64) -> Step {
    let (work, waiting) = (GpuWork::Kernel(time(length)), Waiting::Synchronous);
    Step::Gpu(GpuOperation { gpu: None, work, waiting, interrupts: 1, memory: Factor::ZERO })
}

fn task(name: &str, period: u64, body: Vec<Step>) -> Task {
    Task { body, ..Task::periodic(name, Nanos(1), Nanos(period)) }
}

/// A job of 10 us on a CPU, then this much on a GPU.
fn user(name: &str, length: u64, period: u64) -> Task {
    task(name, period, vec![Step::Cpu(time(10_000)), kernel(length)])
}

fn workload(cpus: usize, gpus: usize, tasks: Vec<Task>) -> Workload {
    let mut platform = Platform::identical(cpus);
    for index in 0..gpus {
        platform.gpus.push(Gpu {
            name: format!("gpu{index}"),
            cluster: 0,
            copy_engines: 1,
            bandwidth: 1_000_000_000,
            latency: Nanos::ZERO,
            interrupt_cpus: platform.clusters[0].clone(),
        });
    }
    Workload::new("w", platform, tasks)
}

fn managed(mut workload: Workload, arbitration: GpuArbitration, handling: InterruptHandling) -> Workload {
    workload.gpu_management.arbitration = arbitration;
    workload.gpu_management.handling = handling;
    workload
}

fn halves(mut workload: Workload, top: u64, bottom: u64) -> Workload {
    workload.gpu_management.top_half = Some(time(top));
    workload.gpu_management.bottom_half = Some(time(bottom));
    workload
}

const AWARE: GpuArbitration = GpuArbitration::KFmlp { length_aware: true };
const OBLIVIOUS: GpuArbitration = GpuArbitration::KFmlp { length_aware: false };
const KLMIRQD: InterruptHandling = InterruptHandling::Klmirqd { threads: None };
const RT_HIGH: InterruptHandling = InterruptHandling::PreemptRt(ThreadPriority::High);

fn checked(workload: &Workload, scheduler: &str, accounting: Accounting) -> Report {
    let options = Options { scaling: false, accounting, ..Options::default() };
    check(workload, &scheduler.parse().expect("a scheduler"), &options)
}

fn terms(workload: &Workload, term: Term) -> Vec<u64> {
    let report = checked(workload, "G-EDF", Accounting::Safe);
    assert_eq!(report.refusals, []);
    let of = |terms: Option<Terms>| terms.expect("an accounting").get(term).0;
    report.tasks.iter().map(|task| of(task.terms)).collect()
}

fn five(gpus: usize, arbitration: GpuArbitration) -> Workload {
    let names = ["a", "b", "c", "d", "e"];
    let tasks = names.iter().zip([6, 5, 4, 3, 3]).map(|(name, length)| user(name, length * 100, 1_000_000));
    managed(workload(2, gpus, tasks.collect()), arbitration, InterruptHandling::Linux)
}

/// A worked example with l = 6, 5, 4, 3, 3: with two GPUs the exact blocking is 7, 7, 8, 9, 9, with
/// three 4, 4, 5, 5, 5; by number of requests 2 or 1 of the longest others.
#[test]
fn requests_for_a_gpu_wait_for_the_queue_that_others_make_longest() {
    let hundreds = |values: [u64; 5]| values.map(|value| value * 100).to_vec();
    assert_eq!(terms(&five(1, AWARE), Term::GpuWaiting), hundreds([15, 16, 17, 18, 18]));
    assert_eq!(terms(&five(2, AWARE), Term::GpuWaiting), hundreds([7, 7, 8, 9, 9]));
    assert_eq!(terms(&five(3, AWARE), Term::GpuWaiting), hundreds([4, 4, 5, 5, 5]));
    assert_eq!(terms(&five(2, OBLIVIOUS), Term::GpuWaiting), hundreds([9, 10, 11, 11, 11]));
    assert_eq!(terms(&five(5, OBLIVIOUS), Term::GpuWaiting), [0; 5]);
    assert_eq!(terms(&five(2, AWARE), Term::Gpu), hundreds([6, 5, 4, 3, 3]));
}

fn with_tokens(cpus: usize, sync: GpuSync) -> Vec<u64> {
    let names = ["a", "b", "c", "d", "e"];
    // Of rising periods, so of falling priorities, and much longer than all of them take.
    let user = |(index, length): (u64, u64)| user(names[index as usize], length * 100, 1_000_000 + index);
    let set = workload(cpus, 1, (0..5).zip([6, 5, 4, 3, 3]).map(user).collect());
    let report =
        checked(&managed(set, GpuArbitration::GpuSync(sync), InterruptHandling::Linux), "G-RM", Accounting::Safe);
    assert_eq!(report.refusals, []);
    report.tasks.iter().map(|task| task.terms.expect("an accounting").get(Term::GpuWaiting).0 / 100).collect()
}

/// One token, two CPUs, queues of two: the most urgent job waits for three of the longest holds (2 f - 1). Below it a request
/// may be displaced once by each job above, and two holds more are all there are. Three CPUs and room for all: two ahead.
#[test]
fn requests_for_tokens_wait_for_phases_that_displacements_repeat() {
    let sync = GpuSync { hold: TokenHold::Section, ..GpuSync::DEFAULT };
    assert_eq!(with_tokens(2, sync), [5 + 4 + 3, 6 + 4 + 3 + 3, 6 + 5 + 3 + 3, 18, 18]);
    // f = 3, so five holds; there are four others.
    assert_eq!(with_tokens(3, sync), [15, 16, 17, 18, 18]);
    let roomy = GpuSync { tokens: 2, fifo_length: Some(5), fifo_requests: Some(5), ..sync };
    // Two queues for five: two ahead, each with one operation of another ahead on the engine; not better than each once.
    assert_eq!(with_tokens(2, roomy), [15, 16, 17, 18, 18]);
    let short = GpuSync { fifo_requests: Some(1), ..sync };
    assert_eq!(with_tokens(2, short), [15, 16, 17, 18, 18], "queues too short for donors: each section once");
}

#[test]
fn a_second_token_is_worth_it_where_holders_do_more_than_one_thing() {
    let body = || {
        let inner = vec![kernel(100), Step::Cpu(time(900))];
        vec![Step::Cpu(time(10)), Step::GpuSection { body: inner }]
    };
    let waits = |tokens| {
        let tasks = (0..4).map(|index| task("t", 1_000_000 + index, body())).collect();
        let sync = GpuSync { tokens, hold: TokenHold::Section, ..GpuSync::DEFAULT };
        let set = managed(workload(4, 1, tasks), GpuArbitration::GpuSync(sync), InterruptHandling::Linux);
        let report = checked(&set, "G-EDF", Accounting::Safe);
        let of = |term| report.tasks[0].terms.expect("an accounting").get(term).0;
        (of(Term::GpuWaiting), of(Term::EngineWaiting))
    };
    assert_eq!(waits(1), (3_000, 0));
    // Two queues for four, one ahead: its hold, in which it waits for one kernel, and so does the job itself.
    assert_eq!(waits(2), (1_000 + 100, 100));
    assert_eq!(waits(4), (0, 300));
}

#[test]
fn what_tokens_cannot_bound_is_refused_by_name() {
    let users = || vec![user("a", 10, 1_000_000), user("b", 10, 1_000_000)];
    let refused_of = |sync, tasks, gpus| {
        let set = managed(workload(2, gpus, tasks), GpuArbitration::GpuSync(sync), InterruptHandling::Linux);
        refused(&set, "G-EDF", Accounting::Safe)
    };
    let mut named = users();
    for step in &mut named[0].body {
        if let Step::Gpu(operation) = step {
            operation.gpu = Some(1);
        }
    }
    assert_eq!(refused_of(GpuSync::DEFAULT, named.clone(), 2), ["task \"a\""], "one place a queue");
    let roomy = GpuSync { fifo_length: Some(2), fifo_requests: Some(2), ..GpuSync::DEFAULT };
    assert_eq!(refused_of(roomy, named, 2), [""; 0]);
    let mut set = workload(2, 1, users());
    resource(&mut set, ResourceProtocol::Fifo);
    let inner = Step::GpuSection { body: vec![kernel(10)] };
    set.tasks[0].body = vec![Step::Cpu(time(1)), Step::Critical { resource: 0, body: vec![inner] }];
    set.gpu_management.arbitration = GpuArbitration::GpuSync(GpuSync::DEFAULT);
    assert_eq!(refused(&set, "G-EDF", Accounting::Safe), ["task \"a\""], "kept beyond the section");
    set.gpu_management.arbitration = GpuArbitration::GpuSync(GpuSync { hold: TokenHold::Section, ..GpuSync::DEFAULT });
    assert_eq!(refused(&set, "G-EDF", Accounting::Safe), [""; 0]);
}

/// The driver gives `a`, `c` and `e` the first of two GPUs, `b` and `d` the second; each operation waits for one of each
/// other task there.
#[test]
fn operations_wait_for_engines_where_the_driver_arbitrates() {
    let driver = five(2, GpuArbitration::Driver);
    assert_eq!(terms(&driver, Term::EngineWaiting), [700, 300, 900, 500, 1_000]);
    assert_eq!(terms(&driver, Term::GpuWaiting), [0; 5]);
}

/// An interrupt for each job that may be pending in a window of the other's response time.
#[test]
fn halves_delay_everybody_but_klmirqds_delay_their_owner() {
    let tasks = || vec![user("user", 100_000, 1_000_000), task("other", 1_000_000, vec![Step::Cpu(time(10_000))])];
    let of = |handling, term| terms(&halves(managed(workload(2, 1, tasks()), AWARE, handling), 7, 90), term);
    for handling in [InterruptHandling::Linux, InterruptHandling::ProcessAware, RT_HIGH] {
        let interrupts = of(handling, Term::TopHalves)[1] / 7;
        assert_eq!(interrupts, 1, "{handling:?}");
        assert_eq!(of(handling, Term::TopHalves), [7 * interrupts; 2]);
        assert_eq!(of(handling, Term::BottomHalves), [90 * interrupts; 2]);
    }
    assert_eq!(of(KLMIRQD, Term::BottomHalves), [90, 0]);
}

fn resource(workload: &mut Workload, protocol: ResourceProtocol) {
    workload.resources.push(Resource { name: "log".to_owned(), protocol, replicas: 1 });
}

fn critical(length: u64) -> Step {
    Step::Critical { resource: 0, body: vec![Step::Cpu(time(length))] }
}

/// In FIFO order one section of each other user at each request; in priority order those of all jobs that may be pending
/// meanwhile, one of each; and with a ceiling tasks that ask for nothing wait, too.
#[test]
fn resources_are_waited_for_by_their_protocols() {
    let tasks = || {
        let cpu = || Step::Cpu(time(100));
        vec![
            task("a", 10_000, vec![cpu(), critical(30), critical(10)]),
            task("b", 10_000, vec![cpu(), critical(50)]),
            task("c", 10_000, vec![cpu()]),
        ]
    };
    let waits = |protocol, scheduler: &str| {
        let mut set = workload(2, 0, tasks());
        resource(&mut set, protocol);
        let report = checked(&set, scheduler, Accounting::Safe);
        assert_eq!(report.refusals, []);
        let of = |terms: Option<Terms>| terms.expect("an accounting").get(Term::LockWaiting).0;
        report.tasks.iter().map(|task| of(task.terms)).collect::<Vec<u64>>()
    };
    assert_eq!(waits(ResourceProtocol::Fifo, "G-EDF"), [50, 30, 0]);
    assert_eq!(waits(ResourceProtocol::PriorityInheritance, "G-EDF"), [50, 40, 0]);
    assert_eq!(waits(ResourceProtocol::PriorityCeiling, "G-RM"), [50, 40, 90]);
}

/// "b" alone asks for the second lock while it holds none: a holder of it may wait for the first one, so for "c", too. No job
/// waits for a lock that is not nested with its own.
#[test]
fn a_lock_is_waited_for_together_with_those_that_it_is_nested_in() {
    let held = |resource: usize, mut body: Vec<Step>, length: u64| {
        body.insert(0, Step::Cpu(time(length)));
        vec![Step::Cpu(time(100)), Step::Critical { resource, body }]
    };
    let inner = || Step::Critical { resource: 1, body: vec![Step::Cpu(time(5))] };
    let tasks = vec![
        task("a", 10_000, held(0, vec![inner()], 20)),
        task("b", 10_000, held(1, vec![], 7)),
        task("c", 10_000, held(0, vec![], 9)),
        task("d", 10_000, held(2, vec![], 3)),
        task("e", 10_000, held(2, vec![], 4)),
    ];
    let mut set = workload(2, 0, tasks);
    (0..3).for_each(|_| resource(&mut set, ResourceProtocol::PriorityInheritance));
    assert_eq!(terms(&set, Term::LockWaiting), [7 + 9, 25 + 9, 25 + 7, 4, 3]);
}

/// Every stage of paper 000's equations, summed.
#[test]
fn the_published_accounting_is_that_of_the_klmirqd_module() {
    let tasks = vec![
        user("a", 3_000_000, 30_000_000),
        task("b", 40_000_000, vec![Step::Cpu(time(5_000)), kernel(2_000_000), kernel(1_000_000)]),
        task("c", 15_000_000, vec![Step::Cpu(time(4_000_000))]),
    ];
    let mut set = workload(2, 2, tasks);
    set.platform.overheads = OverheadProfile::published("elliott2012-klmirqd").expect("published");
    let half = Costs::PUBLISHED.top_half + Costs::PUBLISHED.bottom_half;
    let gpu = |cpu: u64, gpu: u64, uses: u32, period| {
        let gpu = gpu + u64::from(uses) * half;
        GpuTask { cpu, gpu, critical_section: gpu, uses, period }
    };
    let expected = [
        gpu(10_000, 3_000_000, 1, 30_000_000),
        gpu(5_000, 3_000_000, 2, 40_000_000),
        GpuTask { cpu: 4_000_000, gpu: 0, critical_section: 0, uses: 0, period: 15_000_000 },
    ];
    let lengths = expected.map(|task| task.critical_section);
    let bounds = blocking(&lengths, 2, Blocking::Exact, 1_000);
    for (handling, method) in [
        (InterruptHandling::Linux, Handling::Slih),
        (InterruptHandling::ProcessAware, Handling::Pai),
        (KLMIRQD, Handling::Klmirqd),
    ] {
        let report = checked(&managed(set.clone(), AWARE, handling), "G-EDF", Accounting::Published);
        assert!(report.hard.is_schedulable(), "{report:?}");
        for (index, task) in report.tasks.iter().enumerate() {
            let others = interrupts(&expected, &[0; 3], index);
            let blocking = u64::try_from(bounds[index].bound.to_integer()).expect("small");
            let stages = inflate(&expected[index], blocking, others, 0, &Costs::PUBLISHED, method);
            assert_eq!(task.inflated_wcet.map(|wcet| u128::from(wcet.0)), Some(stages.ticked), "{method:?} {index}");
        }
    }
}

fn refused(workload: &Workload, scheduler: &str, accounting: Accounting) -> Vec<String> {
    let report = checked(workload, scheduler, accounting);
    report.refusals.into_iter().map(|refusal| refusal.subject).collect()
}

#[test]
fn ways_to_share_that_have_no_bound_are_refused_by_name() {
    let users = || vec![user("a", 10, 1_000_000), user("b", 10, 1_000_000)];
    let refused_of = |arbitration, handling, scheduler| {
        refused(&managed(workload(2, 2, users()), arbitration, handling), scheduler, Accounting::Safe)
    };
    let linux = InterruptHandling::Linux;
    assert_eq!(refused_of(GpuArbitration::Semaphore, linux, "G-EDF"), [""; 0]);
    let gpusync = GpuArbitration::GpuSync(GpuSync::DEFAULT);
    assert_eq!(refused_of(gpusync, linux, "G-EDF"), [""; 0]);
    let low = InterruptHandling::PreemptRt(ThreadPriority::Low);
    assert_eq!(refused_of(AWARE, low, "G-EDF"), [""; 0]);
    let spinning = GpuArbitration::DriverSpinning;
    assert_eq!(refused_of(spinning, low, "G-EDF"), ["interrupt handling \"preempt_rt_low\""], "both wait for ever");
    assert_eq!(refused_of(spinning, InterruptHandling::PreemptRt(ThreadPriority::High), "G-EDF"), [""; 0]);
    let one_thread = InterruptHandling::Klmirqd { threads: Some(1) };
    assert_eq!(refused_of(AWARE, one_thread, "G-EDF"), [""; 0]);
    let mut clusters = managed(workload(2, 2, users()), AWARE, one_thread);
    clusters.platform.clusters = vec![vec![CpuId(0)], vec![CpuId(1)]];
    for (cluster, gpu) in clusters.platform.gpus.iter_mut().enumerate() {
        (gpu.cluster, gpu.interrupt_cpus) = (cluster, vec![CpuId(cluster as u16)]);
        clusters.tasks[cluster].cluster = Some(cluster);
    }
    let across = refused(&clusters, "C-EDF", Accounting::Safe);
    assert_eq!(across, ["interrupt handling \"klmirqd\""]);
    assert_eq!(refused_of(AWARE, linux, "CQm"), [""; 0]);
    assert_eq!(refused_of(AWARE, KLMIRQD, "CQm"), ["G-EDF/CQm"]);
    let mut called = managed(workload(2, 2, users()), AWARE, linux);
    called.gpu_management.callback = Some(ExecutionTime::constant(Nanos(1)));
    assert_eq!(refused(&called, "G-EDF", Accounting::Safe), [""; 0]);
    assert_eq!(refused_of(AWARE, linux, "CE1"), ["task \"a\"", "task \"b\""]);
    assert_eq!(refused_of(AWARE, linux, "P-EDF"), [""; 0]);
    assert_eq!(
        refused_of(AWARE, KLMIRQD, "P-EDF"),
        ["GPU \"gpu0\"", "GPU \"gpu1\"", "task \"b\"", "GPU \"gpu0\"", "GPU \"gpu1\""]
    );
    assert_eq!(refused_of(AWARE, KLMIRQD, "G-EDF"), [""; 0]);
    let crowded = managed(workload(2, 1, users()), GpuArbitration::Driver, KLMIRQD);
    assert_eq!(refused(&crowded, "G-EDF", Accounting::Safe), [""; 0]);
    assert_eq!(refused(&crowded, "G-EDF", Accounting::Published).len(), 2, "nothing published counts such waits");
    let driver = managed(workload(2, 2, users()), GpuArbitration::Driver, linux);
    let published = refused(&driver, "G-EDF", Accounting::Published);
    assert_eq!(published, ["the published accounting of GPU interrupts"]);
}

#[test]
fn gpus_that_interrupt_other_clusters_are_refused_where_bottom_halves_need_a_thread() {
    let mut set = managed(workload(2, 1, vec![user("a", 10, 1_000_000)]), AWARE, InterruptHandling::Linux);
    set.platform.clusters = vec![vec![CpuId(0)], vec![CpuId(1)]];
    set.tasks[0].cluster = Some(0);
    assert_eq!(refused(&set, "C-EDF", Accounting::Safe), [""; 0]);
    assert_eq!(refused(&set, "C-EDF", Accounting::Published), ["GPU \"gpu0\""]);
    set.gpu_management.handling = KLMIRQD;
    assert_eq!(refused(&set, "C-EDF", Accounting::Safe), ["GPU \"gpu0\""]);
    set.platform.gpus[0].interrupt_cpus = vec![CpuId(0)];
    assert_eq!(refused(&set, "C-EDF", Accounting::Safe), [""; 0]);
    set.tasks[0].cluster = Some(1);
    assert_eq!(refused(&set, "C-EDF", Accounting::Safe), ["task \"a\""]);
}

#[test]
fn resources_without_a_bound_are_refused_by_name() {
    let nested = |outer: usize, inner: usize| {
        let inner = Step::Critical { resource: inner, body: vec![Step::Cpu(time(1))] };
        Step::Critical { resource: outer, body: vec![inner] }
    };
    let cpu = || Step::Cpu(time(1));
    let tasks = vec![task("a", 1_000, vec![cpu(), nested(0, 1)]), task("b", 1_000, vec![cpu(), nested(1, 0)])];
    let mut set = workload(2, 0, tasks);
    resource(&mut set, ResourceProtocol::Fifo);
    resource(&mut set, ResourceProtocol::Fifo);
    assert_eq!(refused(&set, "G-EDF", Accounting::Safe), ["resource \"log\""], "a circle");
    set.tasks.truncate(1);
    assert_eq!(refused(&set, "G-EDF", Accounting::Safe), [""; 0]);
    set.resources[1].protocol = ResourceProtocol::PriorityCeiling;
    assert_eq!(refused(&set, "G-EDF", Accounting::Safe), [""; 0], "a deadline floor");
    assert_eq!(refused(&set, "G-EDF", Accounting::Published), ["resource \"log\""], "a deadline floor");
    assert_eq!(refused(&set, "G-RM", Accounting::Safe), [""; 0]);
}

/// A job on cpu0 waits for one on cpu1, which executes 100 us with a lock, and there behind one of 300 us that is more urgent.
#[test]
fn what_delays_a_holder_on_another_cpu_is_part_of_a_wait() {
    let us = |us: u64| us * 1_000;
    let section = |wcet| Step::Critical { resource: 0, body: vec![Step::Cpu(time(wcet))] };
    let cpu = |wcet| Step::Cpu(time(wcet));
    let tasks = vec![
        task("far", us(1_000), vec![cpu(us(300))]),
        task("waiter", us(2_000), vec![cpu(us(50)), section(us(10))]),
        task("holder", us(4_000), vec![section(us(100))]),
        task("below", us(8_000), vec![cpu(us(200))]),
    ];
    let mut set = workload(2, 0, tasks);
    resource(&mut set, ResourceProtocol::Fifo);
    for (task, cpu) in set.tasks.iter_mut().zip([1, 0, 1, 0]) {
        task.cluster = Some(cpu);
    }
    let report = checked(&set, "P-RM", Accounting::Safe);
    assert_eq!(report.refusals, []);
    assert!(report.hard.is_schedulable());
    let bound = |task: usize| report.tasks[task].response_time.map(|bound| bound.time.0);
    assert_eq!(bound(0), Some(us(300)), "a section is less urgent than it, whichever job waits for its holder");
    assert_eq!(bound(1), Some(us(50 + 10 + 100 + 300)), "as long as far executes the holder does not");
    assert_eq!(bound(2), Some(us(100 + 10 + 300 + 60)), "and the waiter, itself a holder, is above it");
    assert_eq!(bound(3), Some(us(200 + 60)), "what others do on cpu1 does not concern it");
    assert_eq!(report.clusters.iter().map(|cluster| cluster.tasks.clone()).collect::<Vec<_>>(), [[1, 3], [0, 2]]);
    assert_eq!(report.tasks.iter().map(|task| task.cluster).collect::<Vec<_>>(), [1, 0, 1, 0]);
    let reasons = checked(&set, "P-RM", Accounting::Published).refusals;
    assert!(reasons[0].reason.contains("no accounting is published"), "{reasons:?}");
}

/// Eleven tasks may each have a bottom half pending on one CPU, and Linux runs ten after an interrupt.
#[test]
fn bottom_halves_that_may_be_left_to_the_daemon_are_no_bound() {
    let tasks = |count| (0..count).map(|_| user("t", 10, 100_000_000)).collect();
    let set =
        |count, arbitration| halves(managed(workload(2, 1, tasks(count)), arbitration, InterruptHandling::Linux), 1, 1);
    let status = |count, arbitration| checked(&set(count, arbitration), "G-EDF", Accounting::Safe).hard.status;
    assert_eq!(status(11, GpuArbitration::Driver), Status::NotProven);
    assert_eq!(status(10, GpuArbitration::Driver), Status::Schedulable);
    assert_eq!(status(11, AWARE), Status::Schedulable, "one GPU that is held has one pending");
}
