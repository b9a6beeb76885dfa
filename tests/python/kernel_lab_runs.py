"""Longer runs of Laxity's scheduler in the lab's kernel: `make test-kernel-lab`, which names this file to pytest."""

import json
import os
import re
import subprocess
from pathlib import Path

import kernel_lab
import pytest
from test_kernel_lab import LAXITY, ROOT, delays, jobs, judged, lab, programs

__all__ = ["programs"]

# Each takes a minute, most of it the verifier's; LAXITY_KILLS=50 is an hour on each number of CPUs.
KILLS = int(os.environ.get("LAXITY_KILLS", "2"))
# Seconds of the machine; of this one's there are some two and a half times as many.
SOAK_S = int(os.environ.get("LAXITY_SOAK", "10"))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("policy", ["G-EDF", "G-RM", "G-FP", "C-DM --cluster-size 2", "P-RM", "P-EDF"])
def test_random_tasks_on_four_cpus_have_the_links_of_the_policy(programs, tmp_path, policy, seed):
    others = "--others 1ms/20ms" if seed == 1 else ""
    script = f"""
    start --policy {policy} {others} --trace /out/trace.lxt
    kernel-tasks seed={seed}1 tasks=10 load=1800 for=1000 suspend=25 || exit 1
    kernel-tasks seed={seed}2 tasks=5 load=2500 for=1000 suspend=5 || exit 2
    laxity sched stop || exit 3
    ended
    """
    said = lab(programs, tmp_path / "out", script, smp=4)
    assert "state disabled" in said, said
    assert "lost" not in said, said
    assert judged(tmp_path / "out" / "trace.lxt")[f"follows {policy.split()[0]}/CEm"] == "yes"


def test_on_one_cpu_no_deadline_is_missed_below_full_load(programs, tmp_path):
    script = """
    start --policy G-EDF --trace /out/trace.lxt
    kernel-tasks seed=7 tasks=6 load=900 for=3000 || exit 1
    laxity sched stop || exit 2
    ended
    """
    lab(programs, tmp_path / "out", script, smp=1)
    claims = judged(tmp_path / "out" / "trace.lxt")
    assert claims["follows G-EDF/CEm"] == "yes"
    assert claims["deadlines met"] == "yes"


@pytest.mark.parametrize("smp", [1, 4])
def test_non_preemptive_sections_are_not_preempted(programs, tmp_path, smp):
    script = f"""
    start --policy G-EDF --trace /out/trace.lxt
    kernel-tasks seed=3 tasks={smp + 4} load={smp * 450 + 400} for=1500 suspend=10 section=60 || exit 1
    laxity sched stop || exit 2
    ended
    """
    said = lab(programs, tmp_path / "out", script, smp)
    # Zero tolerance: links move at once, and no job is preempted in a section that keeps its CPU.
    assert judged(tmp_path / "out" / "trace.lxt")["follows G-EDF/CEm"] == "yes"
    sections = [(int(all_), int(preempted)) for all_, preempted in re.findall(r"sections=(\d+) preempted=(\d+)", said)]
    assert sum(all_ for all_, _ in sections) > 100, said
    if smp == 1:
        # There a thread sees whether another one executed meanwhile.
        assert [preempted for _, preempted in sections] == [0] * len(sections), said


def test_a_job_that_never_returns_leaves_others_their_time(programs, tmp_path):
    script = """
    start --policy G-EDF --trace /out/trace.lxt
    kernel-tasks seed=3 tasks=5 load=600 for=1500 suspend=10 runaway=1 || exit 1
    laxity sched stop || exit 2
    ended
    """
    said = lab(programs, tmp_path / "out", script, smp=1)
    assert judged(tmp_path / "out" / "trace.lxt")["follows G-EDF/CEm"] == "yes"
    late = [(int(jobs), int(late)) for jobs, late in re.findall(r" jobs=(\d+) late=(\d+) ", said)]
    # 0.6 and the runaway's 0.25 are less than a CPU. A first job may be released before its thread is a task.
    assert len(late) == 5
    assert all(count > 10 and late <= 1 for count, late in late), said


def test_a_job_that_never_ends_leaves_other_threads_their_share(programs, tmp_path):
    # Beside it two shells that would like to have the whole CPU. On several CPUs the lab cannot tell: they take turns,
    # and while one executes without end timers of the others are not served in time, whatever schedules them.
    script = """
    start --policy P-EDF --others 20ms/50ms --trace /out/trace.lxt
    for shell in 1 2; do while :; do :; done & echo $! >> /out/shells; done
    kernel-tasks seed=4 tasks=1 load=1 for=8000 runaway=2 & tasks=$!
    until laxity sched status | grep -q runaway; do kill -0 $tasks || exit 1; sleep 0.2; done
    # Its job has begun.
    sleep 2
    laxity sched status --json > /out/status.json || exit 2
    kill -0 $tasks || exit 3
    wait $tasks || exit 4
    laxity sched stop || exit 5
    kill $(cat /out/shells)
    ended
    """
    said = lab(programs, tmp_path / "out", script, smp=1)
    assert judged(tmp_path / "out" / "trace.lxt")["follows P-EDF/CEm"] == "yes"
    status = json.loads((tmp_path / "out" / "status.json").read_text())["status"]
    seen = next(task for task in status["tasks"] if task["name"] == "runaway")
    assert (seen["released"], seen["completed"]) == (1, 0), "the loader answers while the job executes"
    executed, passed = map(int, re.search(r"runaway cpu_ms=(\d+) of=(\d+)", said).groups())
    assert 0.58 < executed / passed < 0.62, "30 of each 50 ms"


@pytest.mark.parametrize("smp", [1, 2])
def test_tasks_go_on_under_linux_when_the_loader_is_killed(programs, tmp_path, smp):
    script = f"""
    for round in $(seq 1 {KILLS}); do
        kernel-tasks seed=$round tasks=5 load=900 for=1000 linux=2 > /out/plain$round.txt || exit 1
        start --policy P-EDF
        kernel-tasks seed=$round tasks=5 load=900 for=1500 > /out/tasks$round.txt & tasks=$!
        until laxity sched status | grep -q task4; do kill -0 $tasks || exit 2; sleep 0.2; done
        sleep 1.$((round * 37 % 100 + 100))
        kill -KILL $loader
        wait $tasks || exit 3
        ended
    done
    """
    said = lab(programs, tmp_path / "out", script, smp, timeout=300 + 600 * KILLS)
    assert said.count("loader 137") == KILLS
    assert said.count("state disabled") == KILLS
    for number in range(1, KILLS + 1):
        plain, killed = ((tmp_path / "out" / f"{name}{number}.txt").read_text() for name in ["plain", "tasks"])
        done = jobs(killed)
        assert len(done) == 5
        assert all(linux > 0 for _, linux in done), "each task was told, and went on"
        assert any(linux < count for count, linux in done), "and some ran under the scheduler before"
        # No job begins later than a period after the latest that Linux has without the scheduler. On several CPUs the
        # machine loses ten milliseconds now and then by itself.
        outliers_us = 0 if smp == 1 else 200_000
        for (period_us, delay_us), (_, linux_us) in zip(delays(killed), delays(plain), strict=True):
            assert delay_us <= linux_us + period_us + outliers_us, killed


def test_tasks_go_on_under_linux_when_the_kernel_ends_the_scheduler(programs, tmp_path):
    script = """
    start --policy G-EDF
    kernel-tasks seed=1 tasks=3 load=600 for=1500 & tasks=$!
    sleep 1.6
    echo 1 > /proc/sys/kernel/sysrq
    echo S > /proc/sysrq-trigger
    wait $tasks || exit 1
    ended
    """
    said = lab(programs, tmp_path / "out", script, smp=1)
    assert "loader 1" in said
    assert "the kernel ended the scheduler (disabled by sysrq-S" in said
    done = jobs(said)
    assert len(done) == 3
    assert all(0 < linux < count for count, linux in done), "under the scheduler, and then under Linux"


def test_tasks_that_are_killed_leave_their_cpus_to_others(programs, tmp_path):
    script = """
    start --policy G-EDF
    for round in $(seq 1 40); do
        kernel-tasks seed=$round tasks=5 load=1200 for=60000 > /out/killed.txt 2>&1 & tasks=$!
        sleep $((round % 3)).$((round % 7 + 3))
        kill -KILL $tasks
        wait $tasks
    done
    kernel-tasks seed=99 tasks=5 load=800 for=1000 || exit 1
    laxity sched status | tail -1
    laxity sched stop || exit 2
    ended
    """
    said = lab(programs, tmp_path / "out", script, smp=2, timeout=3600)
    assert "loader 0" in said
    assert "state disabled" in said
    tasks = int(re.search(r"ended: (\d+) tasks", said).group(1))
    assert tasks > 100, "most were killed as tasks, and not before they were"
    assert len(jobs(said)) == 5


@pytest.mark.parametrize("policy", ["G-EDF", "P-FP"])
def test_threads_that_end_as_tasks_leave_nothing_behind(programs, tmp_path, policy):
    # Without leaving first, as if they were killed. More than there are numbers, so that these are used again, and so
    # are places in the page of the process. A thread that is lost on its way out has the kernel end the scheduler.
    script = f"""
    start --policy {policy} --others 2ms/50ms
    kernel-tasks seed=5 tasks=6 load=1400 for=20000 exits=8 || exit 1
    laxity sched status
    laxity sched stop || exit 2
    ended
    """
    said = lab(programs, tmp_path / "out", script, smp=2)
    assert "loader 0" in said
    assert sum(int(count) for count in re.findall(r"exited as tasks: (\d+)", said)) > 600, said
    assert all(linux == 0 for _, linux in jobs(said)), said
    assert "no task" in said, "none is left"


def test_each_kernel_that_can_be_had_runs_it_or_is_refused_by_its_description(programs, tmp_path, monkeypatch):
    script = """
    laxity sched doctor --json > /out/doctor.json
    if [ $? -ne 0 ]; then laxity sched start 2> /out/refused.txt || exit 0; exit 1; fi
    start --policy C-EDF --cluster-size 2 --trace /out/trace.lxt
    kernel-tasks seed=5 tasks=6 load=900 for=600 suspend=30 section=60 runaway=1 || exit 2
    laxity sched stop || exit 3
    ended
    """
    versions = kernel_lab.versions()
    assert len(versions) > 1
    ran = []
    for version in versions:
        monkeypatch.setenv("LAXITY_LAB_KERNEL", version)
        out = tmp_path / version
        said = lab(programs, out, script, smp=2)
        needs = json.loads((out / "doctor.json").read_text())["checks"]
        lacking = [need for need in needs if not need["holds"]]
        if lacking:
            # Kernels that were built with an old pahole take no scheduler of sched_ext.
            assert [need["name"] for need in lacking] == ["functions"], lacking
            assert "older than 1.31" in lacking[0]["remedy"], lacking
            assert lacking[0]["found"] in (out / "refused.txt").read_text()
        else:
            assert "loader 0" in said, said
            assert "state disabled" in said, said
            assert judged(out / "trace.lxt")["follows C-EDF/CEm"] == "yes", version
            ran.append(version)
    assert kernel_lab.PREFERRED in ran


def test_the_holder_of_a_lock_has_the_priority_of_the_task_that_waits(programs, tmp_path):
    script = """
    start --policy G-FP --trace /out/trace.lxt
    kernel-tasks inversion=1 || exit 1
    laxity sched stop || exit 2
    ended
    """
    said = lab(programs, tmp_path / "out", script, smp=1)
    assert judged(tmp_path / "out" / "trace.lxt")["follows G-FP/CEm"] == "yes"
    response_us = {name: int(us) for name, us in re.findall(r"(\w+) response_us=(\d+)", said)}
    # The most urgent one waits for 15 ms of the least urgent one, and not for the 200 ms of the third.
    assert 16_000 <= response_us["high"] < 16_500, response_us
    assert response_us["middle"] > 200_000, response_us
    assert response_us["low"] > response_us["middle"], response_us


@pytest.mark.parametrize("policy", ["G-EDF", "G-RM", "C-EDF --cluster-size 2", "P-FP"])
def test_tasks_that_share_a_lock_have_the_links_of_the_policy(programs, tmp_path, policy):
    script = f"""
    start --policy {policy} --trace /out/trace.lxt
    kernel-tasks seed=8 tasks=10 load=2200 for=1500 suspend=20 lock=60 section=30 runaway=1 || exit 1
    laxity sched stop || exit 2
    ended
    """
    said = lab(programs, tmp_path / "out", script, smp=4)
    trace = tmp_path / "out" / "trace.lxt"
    assert "lost" not in said, said
    assert judged(trace)[f"follows {policy.split()[0]}/CEm"] == "yes"
    assert sum(int(locks) for locks in re.findall(r" locks=(\d+)", said)) > 100, said
    command = [LAXITY, "trace", trace, "export", "--table", "events", "--format", "json", "-o", "-"]
    events = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    raised = [event for event in events if event["event"] == "priority"]
    assert sum(event["of_task"] != event["task"] for event in raised) > 10, "holders inherited"


def test_tasks_come_and_go_beside_forks_and_affinities_until_a_cpu_goes_offline(programs, tmp_path):
    # A trace holds 256 tasks.
    is_traced = SOAK_S <= 10
    script = f"""
    uptime_s() {{ cut -d. -f1 /proc/uptime; }}
    start --policy G-EDF --others 2ms/50ms {"--trace /out/trace.lxt" if is_traced else ""}
    end=$(($(uptime_s) + {SOAK_S})) round=0
    while [ $(uptime_s) -lt $end ]; do
        round=$((round + 1))
        kernel-tasks seed=$round tasks=$((round % 7 + 2)) load=$((round * 253 % 1200 + 400)) \\
            for=$((round * 370 % 900 + 300)) suspend=20 lock=30 section=20 > /out/tasks.txt 2>&1 & tasks=$!
        for child in 1 2 3; do sh -c 'n=0; while [ $n -lt 3000 ]; do n=$((n + 1)); done' & done
        taskset -p $(echo 1 2 4 8 3 f | cut -d' ' -f$((round % 6 + 1))) $$ > /dev/null || exit 1
        sleep 0.$((round % 9 + 1))
        [ $((round % 3)) = 0 ] && kill -KILL $tasks
        kill -0 $loader || exit 2
        grep error: /out/tasks.txt && exit 8
    done
    echo rounds=$round
    taskset -p f $$ > /dev/null
    kernel-tasks seed=99 tasks=6 load=1500 for=3000 & last=$!
    until laxity sched status | grep -q task5; do kill -0 $last || exit 3; sleep 0.2; done
    sleep 2
    echo 0 > /sys/devices/system/cpu/cpu3/online || exit 4
    wait $last || exit 5
    ended
    start --policy P-EDF
    kernel-tasks seed=98 tasks=6 load=1200 for=500 || exit 6
    laxity sched stop || exit 7
    ended
    """
    said = lab(programs, tmp_path / "out", script, smp=4, timeout=300 + 30 * SOAK_S)
    assert "cpu 3 going offline" in said
    if is_traced:
        assert judged(tmp_path / "out" / "trace.lxt")["follows G-EDF/CEm"] == "yes"
    last, after = jobs(said)[:6], jobs(said)[6:]
    assert all(0 < linux < count for count, linux in last), "under the scheduler, and then under Linux"
    assert len(after) == 6
    assert all(linux == 0 for _, linux in after), "on the CPUs that are left"
    assert said.count("state disabled") == 2


def test_programs_in_c_and_cpp_are_tasks_that_share_a_lock(programs, tmp_path):
    subprocess.run(["cargo", "build", "--quiet", "-p", "laxity-capi"], cwd=ROOT, check=True)
    built = []
    compilers = {".c": ["cc"], ".cpp": ["c++", "-std=c++17"]}
    for source in ["examples/c/in_kernel.c", "capi/tests/c/kernel_tasks.c", "capi/tests/cpp/kernel.cpp"]:
        built.append(tmp_path / Path(source).stem)
        compiler = compilers[Path(source).suffix]
        command = [*compiler, "-Wall", "-Wextra", "-Werror", "-Icapi/include", source, "-o", built[-1]]
        command += ["target/debug/liblaxity.a", "-pthread", "-lm", "-ldl", "-lgcc_s"]
        subprocess.run(command, cwd=ROOT, check=True)
    script = """
    start --policy G-EDF --trace /out/trace.lxt
    kernel_tasks > /out/misuse.txt || exit 1
    in_kernel || exit 2
    kernel > /out/cpp.txt || { cat /out/cpp.txt; exit 4; }
    laxity sched stop || exit 3
    ended
    """
    said = lab([*programs, *built], tmp_path / "out", script, smp=2)
    for name in ["misuse.txt", "cpp.txt"]:
        assert (tmp_path / "out" / name).read_text() == "ok\n"
    assert "fast: 50 jobs, 50 by Laxity" in said
    assert "slow: 5 jobs, 5 by Laxity" in said
    assert judged(tmp_path / "out" / "trace.lxt")["follows G-EDF/CEm"] == "yes"
