"""Why a job took longer than its bound, as the report says it: found in the trace, and named only where long enough."""

import re

import pytest

import laxity
from laxity.report._cause import Cause, Lost, lost

TWO_CPUS = """
laxity = 1
name = "drawn"
scheduler = "P-RM"
platform = { cpus = 2 }
[[task]]
name = "short"
period = "10 ms"
wcet = "2 ms"
cluster = 0
[[task]]
name = "long"
period = "20 ms"
wcet = "5 ms"
cluster = 0
[[task]]
name = "elsewhere"
period = "20 ms"
wcet = "9 ms"
cluster = 1
"""


@pytest.mark.parametrize(
    ("task", "wcets_ms", "stretched_ms"),
    [
        (1, (2, 5, 9), 0),
        (1, (1, 5, 9), 1),  # the job that ran before it took a ms longer than it should
        (1, (1, 3, 9), 3),
        (1, (2, 5, 1), 0),  # no job waits for another CPU
        (0, (2, 1, 1), 0),  # nor for a job that has a lower priority and began later
        (1, (2, 9, 9), 0),  # a job that was quicker than it might be gives nothing back
        (1, (2,), None),
    ],
)
def test_what_jobs_executed_longer_than_their_wcets_is_found_in_the_trace(task, wcets_ms, stretched_ms):
    """ms     0 1 2 3 4 5 6 7 8 9
    short     # #
    long          # # # # #        the longest of its jobs ends at 7
    elsewhere # # # # # # # # #
    """
    workload = laxity.Workload.from_toml(TWO_CPUS)
    trace = laxity.simulate(workload, duration="20 ms", trace=True).trace
    wcets_ns = [1_000_000 * ms for ms in wcets_ms]
    assert lost(trace, task, wcets_ns) == (None if stretched_ms is None else Lost(1_000_000 * stretched_ms, 0))


def test_time_in_which_a_ready_job_and_all_others_did_not_run_is_found_in_the_trace():
    """The scheduler itself has the CPU from the release until the job executes."""
    costs = 'overheads = { release = "100 us", scheduling = "30 us" }'
    workload = laxity.Workload.from_toml(TWO_CPUS.replace("{ cpus = 2 }", "{ cpus = 2, " + costs + " }"))
    trace = laxity.simulate(workload, duration="20 ms", trace=True).trace
    found = lost(trace, 0, [2_000_000, 5_000_000, 9_000_000])
    job = next(job for job in trace.jobs().to_pylist() if job["task"] == 0)
    assert found.waiting_ns == job["response_time_ns"] - job["executed_ns"] >= 130_000


@pytest.mark.parametrize(
    ("cause", "says"),
    [
        (Cause(300_000, Lost(1_060_000, 0), 60_000_000), r"0\.30 ms .*others had the CPU.* 1\.06 ms .* took 60\.00 ms"),
        (
            Cause(300_000, Lost(100_000, 200_000), 0),
            r"others had.* 0\.20 ms it was.*took 0\.00 ms.*threads remain",
        ),
        (Cause(300_000, Lost(1_060_000, 0), None), r"others had the CPU.*was not recorded"),
        (Cause(300_000, Lost(100_000, 199_999), 60_000_000), r"no cause found; .* 0\.10 ms longer"),
        (Cause(300_000, None, 300_000), r"perhaps because the hypervisor took .* 0\.30 ms"),
        (Cause(300_000, None, 299_999), r"no cause found\.$"),
        (Cause(300_000, None, None), r"no cause found\.$"),
    ],
)
def test_a_cause_is_named_only_where_it_is_long_enough(cause, says):
    assert re.search(says, cause.says), cause.says
