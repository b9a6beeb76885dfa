//! `laxity exec`: programs that know nothing of Laxity as tasks of its own scheduler.

use std::cell::RefCell;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use laxity_model::Nanos;
use laxity_sched::{Registry, TaskSnapshot};
use laxity_sys::process::cpu_time;
use laxity_sys::scheduling::Attributes;
use laxity_testing::{Alone, Directory, skip, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{laxity, run};

/// A program that never waits.
const BUSY: &str = "while :; do :; done";

/// A folder for systems; nothing if this user may not have real-time threads.
fn place(test: &str) -> Option<(Alone, Directory)> {
    let place = (Alone::with_the_scheduler(), Directory::new(test));
    let (code, _, err) = exec(place.1.path(), "1s", "1ms", &["true"]);
    if err.contains("SCHED_FIFO") {
        skip(err);
        return None;
    }
    assert_eq!((code, err.as_str()), (0, ""));
    Some(place)
}

fn words<'a>(folder: &'a Path, period: &'a str, wcet: &'a str, program: &[&'a str]) -> Vec<&'a str> {
    let folder = folder.to_str().expect("UTF-8");
    let options = ["exec", "--folder", folder, "--system", "s", "--period", period, "--wcet", wcet];
    options.iter().chain(program).copied().collect()
}

fn exec(folder: &Path, period: &str, wcet: &str, program: &[&str]) -> (i32, String, String) {
    run(words(folder, period, wcet, program))
}

/// `laxity exec` in the background, killed when the test ends.
struct Running {
    wrapper: Child,
}

impl Running {
    fn start(folder: &Path, period: &str, wcet: &str, program: &[&str]) -> Running {
        let mut command = Command::new(laxity().get_program());
        command.args(words(folder, period, wcet, program)).stdout(Stdio::null());
        Running { wrapper: command.spawn().expect("the binary starts") }
    }

    fn wrapper(&self) -> Pid {
        Pid::from_raw(self.wrapper.id().cast_signed())
    }

    /// The exit code once it has ended.
    fn code(mut self) -> Option<i32> {
        found("laxity exec ends", || self.wrapper.try_wait().expect("ours")).code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.wrapper.kill();
        let _ = self.wrapper.wait();
    }
}

/// The task of that name; nothing without one, or without the system.
fn task(folder: &Path, name: &str) -> Option<TaskSnapshot> {
    let look = Registry::at(folder).look("s").ok()?;
    look.tasks.into_iter().find(|task| task.name == name)
}

/// The same, once it has completed that many jobs.
fn after(folder: &Path, name: &str, jobs: u64) -> TaskSnapshot {
    found("jobs are complete", || task(folder, name).filter(|task| task.completed >= jobs))
}

/// What `look` finds, sooner or later.
fn found<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    let look = RefCell::new(look);
    let result = RefCell::new(None);
    until(what, || {
        *result.borrow_mut() = (look.borrow_mut())();
        result.borrow().is_some()
    });
    result.into_inner().expect("it was waited for")
}

fn pid(task: &TaskSnapshot) -> Pid {
    Pid::from_raw(task.pid.cast_signed())
}

fn lives(pid: Pid) -> bool {
    kill(pid, None).is_ok()
}

#[test]
fn exit_codes_and_requests_to_end_pass_through() {
    let Some((_alone, folder)) = place("exec-codes") else { return };
    let said = |script: &str| exec(folder.path(), "10ms", "5ms", &["--", "sh", "-c", script]);
    let (code, out, err) = said("echo hello; exit 3");
    assert_eq!((code, out.as_str()), (3, "hello\n"));
    assert!(err.contains("sh ended with exit code 3"), "{err}");
    assert_eq!(said("kill -9 $$").0, 137);
    let (code, _, err) = exec(folder.path(), "10ms", "5ms", &["/no/such/program"]);
    assert_eq!(code, 2);
    assert!(err.contains("cannot start /no/such/program"), "{err}");
    // The trap ends it only if the signal reaches the program itself.
    let script = ["--task", "trap", "sh", "-c", "trap 'exit 5' USR1; while :; do sleep 0.01; done"];
    let running = Running::start(folder.path(), "10ms", "5ms", &script);
    after(folder.path(), "trap", 20);
    kill(running.wrapper(), Signal::SIGUSR1).expect("it lives");
    assert_eq!(running.code(), Some(5));
    assert_eq!(Registry::at(folder.path()).names().expect("readable"), [""; 0], "the last one removes the system");
}

#[test]
fn a_report_says_at_the_end_what_the_program_got() {
    let Some((_alone, folder)) = place("exec-report") else { return };
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; exit 4";
    let (code, out, err) = exec(folder.path(), "10ms", "2ms", &["--json", "--", "sh", "-c", script]);
    assert_eq!((code, out.as_str()), (4, "done\n"), "{err}");
    let report: serde_json::Value = serde_json::from_str(err.lines().next().expect("a line")).expect("JSON");
    let number = |key: &str| report[key].as_u64().unwrap_or_else(|| panic!("{key} of {report}"));
    assert_eq!((report["system"].as_str(), report["task"].as_str()), (Some("s"), Some("sh")));
    assert!(number("cpu_time_ns") > 0 && number("jobs") >= 1, "{report}");
    // Each stop ends a job, and the program ends in the last one.
    assert!(number("stops") <= number("completed") && number("completed") <= number("jobs"), "{report}");
    assert!(number("late") <= number("completed"), "{report}");
    assert!(number("cpu_time_ns") < 4_000_000 || number("stops") > 0, "{report}: it needs more than a budget");
    let (code, _, err) = exec(folder.path(), "10ms", "2ms", &["--report", "--", "sh", "-c", "sleep 0.1"]);
    assert_eq!(code, 0);
    assert!(err.starts_with("sh: ") && err.contains(" of CPU time, stopped "), "{err}");
}

#[test]
fn what_cannot_be_is_bad_usage_and_says_the_way_out() {
    let folder = Directory::new("exec-usage");
    let _alone = Alone::with_the_scheduler();
    for (words, expected) in [
        (["5ms", "6ms", "true"], "wcet <= deadline <= period"),
        (["5ms", "10us", "true"], "must be longer than 50 us"),
        (["5ms", "1ms", "--cluster=3"], "cluster 3 is not one of the system's 1"),
        (["5ms", "1ms", "--cpus=0;1"], "use --clusters for several"),
        (["5ms", "1ms", "--cpus=1023"], "--cpus: CPU 1023 cannot be used; those that can are "),
        (["5ms", "1ms", "--priority=3"], "--priority 3 has no effect: system s does not rank jobs by given priorities"),
        (["5ms", "1ms", "--policy=fp"], "system s ranks jobs by given priorities (fp); say --priority"),
        (["5ms", "1ms", "--cpus="], "--cpus \"\": "),
        (["5ms", "1ms", "--cpus=1-0"], "--cpus \"1-0\": the cluster \"1-0\" is no list of CPUs"),
        (["5ms", "1ms", "--clusters=1-0"], "--clusters \"1-0\": "),
        (["5ms", "1ms", "--cpus=0-99999999"], "names CPU 99999999, and the last that there can be is 1023"),
    ] {
        let (code, _, err) = exec(folder.path(), words[0], words[1], &[words[2], "true"]);
        assert!(err.contains(expected), "{err}");
        assert_eq!(code, 2, "{err}");
    }
}

#[test]
fn two_busy_programs_on_one_cpu_get_their_budgets_in_each_period_and_pay_back_what_they_had_too_much() {
    let Some((_alone, folder)) = place("exec-share") else { return };
    let cpu = laxity_sys::scheduling::usable_cpus().expect("Linux says").pop().expect("it runs somewhere").to_string();
    let start = |name, period, wcet| {
        let words = ["--cpus", &cpu, "--task", name, "--", "sh", "-c", BUSY];
        Running::start(folder.path(), period, wcet, &words)
    };
    // 25 and 30 % of the CPU, so that the one with the longer period is preempted now and then.
    let wcets = [Nanos::from_millis(5), Nanos::from_millis(15)];
    let _running = [start("short", "20ms", "5ms"), start("long", "50ms", "15ms")];
    for (name, wcet) in ["short", "long"].into_iter().zip(wcets) {
        let first = after(folder.path(), name, 2);
        let used_before = cpu_time(first.pid).expect("it lives");
        let sure = task(folder.path(), name).expect("it lives").completed;
        // One that is stopped late had more than its budgets until the next one, which is shorter by that. So a reading between
        // those two may be above, but what is not paid back would be found by all later ones.
        let mut excess = Vec::new();
        while excess.len() < 5 {
            let now = after(folder.path(), name, first.completed + 20 * (1 + excess.len() as u64));
            let used = cpu_time(first.pid).expect("it lives") - used_before;
            // Budgets that were begun before the first reading, and those that were begun before the second. Where the machine
            // takes this thread's CPU between a look and a reading, jobs complete in between.
            let [least, most] = [now.completed.saturating_sub(sure + 1), now.completed - first.completed + 2];
            // Other jobs may have completed between the look and the reading, each within its budget.
            let later = task(folder.path(), name).expect("it lives").completed - now.completed;
            assert!(used.0 >= least.saturating_sub(1) * wcet.0, "{name}: {least} jobs used no more than {used}");
            match used.0.checked_sub((most + later) * wcet.0).filter(|&excess| excess > 0) {
                Some(more) => excess.push(Nanos(more)),
                None => break,
            }
        }
        assert!(excess.len() < 5, "{name} used more than its budgets at each reading, by {excess:?}");
    }
}

/// A program that never waits, and says after a second of wall time how much CPU time, in ns, each of its bursts had: a burst
/// ends where the clock jumps. Its own thread's time is exact, whatever other processes see of it.
const BURSTS: &str = "
import time
wall, cpu = time.monotonic_ns, time.thread_time_ns
end, last, begin = wall() + 1_000_000_000, wall(), cpu()
while last < end:
    now = wall()
    if now - last > 1_000_000:
        at = cpu()
        print(at - begin)
        begin = at
    last = now
";

#[test]
fn a_busy_program_has_its_budget_in_each_period_though_linux_counts_its_time_at_ticks() {
    let Some((_alone, folder)) = place("exec-bursts") else { return };
    for (period, wcet) in [("10ms", 2_000_000), ("5ms", 1_000_000)] {
        let budget = format!("{wcet}ns");
        let (code, out, err) = exec(folder.path(), period, &budget, &["--", "python3", "-c", BURSTS]);
        assert_eq!(code, 0, "{err}");
        let mut bursts: Vec<u64> = out.lines().map(|line| line.parse().expect("a number")).collect();
        bursts.sort_unstable();
        // One burst may be two that nothing came between, or a part of one; most are neither.
        let median = bursts[bursts.len() / 2];
        assert!(median < wcet * 5 / 4, "half of the bursts had more than {median} ns of {wcet}: {bursts:?}");
    }
}

#[test]
fn a_killed_wrapper_takes_its_program_along_and_leaves_the_system_to_the_others() {
    let Some((_alone, folder)) = place("exec-kill") else { return };
    let start = |name| Running::start(folder.path(), "10ms", "2ms", &["--task", name, "--", "sh", "-c", BUSY]);
    let (killed, other) = (start("killed"), start("other"));
    let program = pid(&after(folder.path(), "killed", 2));
    after(folder.path(), "other", 2);
    kill(killed.wrapper(), Signal::SIGKILL).expect("it lives");
    until("the program is gone", || !lives(program));
    until("its task is gone", || task(folder.path(), "killed").is_none());
    let jobs = after(folder.path(), "other", 2).completed;
    let program = pid(&after(folder.path(), "other", jobs + 5));
    // The program of the other one is killed: the wrapper says so, leaves, and removes the system.
    kill(program, Signal::SIGKILL).expect("it lives");
    assert_eq!(other.code(), Some(137));
    assert_eq!(Registry::at(folder.path()).names().expect("readable"), [""; 0]);
    assert!(!lives(program));
}

#[test]
fn a_program_that_outlives_its_killed_wrapper_is_neither_stopped_nor_raised() {
    let Some((_alone, folder)) = place("exec-outlive") else { return };
    if Command::new("setpriv").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip("no setpriv");
    }
    let start = |name, words: &[&'static str]| {
        Running::start(folder.path(), "500ms", "1ms", &[&["--task", name, "--"], words, &["sh", "-c", BUSY]].concat())
    };
    let killed = start("killed", &["setpriv", "--pdeathsig", "clear"]);
    let _other = start("other", &[]);
    let program = after(folder.path(), "killed", 2);
    after(folder.path(), "other", 1);
    assert!(Attributes::of(program.pid).expect("it lives").fixed_priority().is_some(), "it is placed");
    kill(killed.wrapper(), Signal::SIGKILL).expect("it lives");
    until("its task is gone", || task(folder.path(), "killed").is_none());
    until("it is scheduled as before", || Attributes::of(program.pid).expect("it lives").fixed_priority().is_none());
    let used = cpu_time(program.pid).expect("it lives");
    until("it goes on without a budget", || cpu_time(program.pid).expect("it lives") > used + Nanos::from_millis(10));
    kill(pid(&program), Signal::SIGKILL).expect("it lives");
}
