"""SimSo 0.8.5, an independent simulator, yields the same schedules: exactly as many jobs of every task are released,
completed and missed, and every one of them completes in the same nanosecond.

That takes care, all of it on SimSo's side:

- SimSo keeps dates as floats in ms and compares absolute deadlines as such. `now + deadline` then differs in the last
  bit between jobs that are due at the same time, and a tie goes to either. Periods here are whole milliseconds, whose
  sums floats hold exactly; equal deadlines are equal, and both simulators give the tie to the task listed first.
- Costs are converted by truncation: `int(wcet_ms * 1e6)` may lose a nanosecond. `_milliseconds` chooses a float that
  does not.
- SimSo handles what happens at the very end of the run and Laxity only the completions. Runs end at an odd nanosecond,
  at which nothing is released.
"""

import math
import sys
import types
from dataclasses import dataclass

import pytest

import laxity

# SimSo imports a module that Python 3.12 removed, for schedulers in files of their own, which are not used here.
sys.modules.setdefault("imp", types.ModuleType("imp"))

from simso.configuration import Configuration  # noqa: E402
from simso.core import Model  # noqa: E402

CYCLES_PER_MS = 1_000_000
END_NS = 4_000_000_001


@dataclass(frozen=True)
class Counts:
    released: int
    completed: int
    missed: int


def _milliseconds(ns):
    """A float that SimSo's truncation turns back into `ns` cycles."""
    value = ns / CYCLES_PER_MS
    return value if int(value * CYCLES_PER_MS) == ns else math.nextafter(value, math.inf)


def _simso(workload, scheduler):
    """Completions in ns by task and job, None where incomplete; and the deadlines."""
    configuration = Configuration()
    configuration.cycles_per_ms = CYCLES_PER_MS
    configuration.duration = END_NS
    for number, task in enumerate(workload.tasks.to_pylist()):
        configuration.add_task(
            name=f"t{number}",
            identifier=number,
            period=_milliseconds(task["period_ns"]),
            activation_date=_milliseconds(task["phase_ns"]),
            deadline=_milliseconds(task["deadline_ns"]),
            wcet=_milliseconds(task["wcet_ns"]),
            abort_on_miss=False,
        )
    for number in range(workload.cpus):
        configuration.add_processor(name=f"cpu{number}", identifier=number)
    configuration.scheduler_info.clas = scheduler
    configuration.check_all()
    model = Model(configuration)
    model.run_model()
    jobs = {}
    for task in model.task_list:
        for index, job in enumerate(task.jobs):
            arrival = round(job.activation_date * CYCLES_PER_MS)
            deadline = arrival + round(task.deadline * CYCLES_PER_MS)
            jobs[task.identifier, index] = (job.end_date, deadline)
    return jobs


def _counts(jobs, tasks):
    """What is counted of each task's jobs. A job is missed if it ends after its deadline or, unfinished, could have."""
    counts = []
    for task in range(tasks):
        own = [job for (number, _), job in jobs.items() if number == task]
        missed = sum(deadline <= END_NS if end is None else end > deadline for end, deadline in own)
        counts.append(Counts(len(own), sum(end is not None for end, _ in own), missed))
    return counts


def _completions(trace):
    rows = trace.jobs().to_pylist()
    return {(row["task"], row["job"]): (row["completion_ns"], row["deadline_ns"]) for row in rows}


def _assert_agreement(workload, policy, simso_scheduler):
    theirs = _simso(workload, simso_scheduler)
    result = laxity.simulate(workload, policy, duration=f"{END_NS} ns", trace=True)
    rows = result.tasks.select(["released", "completed", "missed"]).to_pylist()
    counts = [Counts(**row) for row in rows]
    assert counts == _counts(theirs, len(rows))
    assert _completions(result.trace) == theirs
    return counts


@pytest.mark.parametrize(
    ("tasks", "cpus", "total", "seed", "misses"),
    [
        (20, 4, "3.2", 1, False),
        (20, 4, "3.95", 2, True),
        (8, 2, "1.6", 3, False),
        (8, 2, "2", 4, True),
        (12, 3, "2.4", 5, False),
        (12, 3, "3.2", 6, True),  # more than there are CPUs: the backlog grows
    ],
)
def test_global_edf_completes_and_misses_the_same_jobs(tasks, cpus, total, seed, misses):
    workload = laxity.generate(
        "randfixedsum/log-uniform(3ms,100ms,1ms)", n=tasks, total=total, seed=seed, cpus=cpus, name="simso"
    )
    counts = _assert_agreement(workload, "G-EDF", "simso.schedulers.EDF2")
    assert any(count.missed for count in counts) == misses


def test_constrained_and_long_deadlines_agree_too():
    """Without phases: SimSo's EDF2 fails while a task has not released its first job."""
    tasks = [
        laxity.Task("a", wcet="2.000003 ms", period="7 ms", deadline="4 ms"),
        laxity.Task("b", wcet="3.5 ms", period="9 ms", deadline="6 ms"),
        laxity.Task("c", wcet="6.25 ms", period="13 ms", deadline="20 ms"),
        laxity.Task("d", wcet="8.000001 ms", period="17 ms", deadline="11 ms"),
        laxity.Task("e", wcet="11 ms", period="29 ms"),
    ]
    counts = _assert_agreement(laxity.workload("mixed", cpus=2, tasks=tasks), "G-EDF", "simso.schedulers.EDF2")
    assert 0 < sum(count.missed for count in counts) < sum(count.released for count in counts)


@pytest.mark.parametrize(
    ("policy", "scheduler"), [("P-EDF", "simso.schedulers.EDF2"), ("P-RM", "simso.schedulers.RM_mono")]
)
def test_one_cpu_agrees_under_edf_and_rate_monotonic(policy, scheduler):
    tasks = [
        laxity.Task(f"t{period}", wcet=f"{wcet} us", period=f"{period} ms")
        for period, wcet in ((29, 4_001), (5, 1_300), (7, 999), (11, 2_750), (53, 4_444), (13, 1_111))
    ]
    _assert_agreement(laxity.workload("one", cpus=1, tasks=tasks), policy, scheduler)


def test_simsos_edf_for_one_cpu_counts_the_same_jobs():
    """Not each completes at the same time: EDF_mono gives ties to the job that arrived first, not to the first task."""
    workload = laxity.generate("randfixedsum/log-uniform(3ms,100ms,1ms)", n=7, total="0.98", seed=7, name="simso")
    result = laxity.simulate(workload, duration=f"{END_NS} ns")
    rows = result.tasks.select(["released", "completed", "missed"]).to_pylist()
    assert [Counts(**row) for row in rows] == _counts(_simso(workload, "simso.schedulers.EDF_mono"), len(rows))
