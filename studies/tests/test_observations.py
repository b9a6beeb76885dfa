"""The table of observations: its criteria, on made-up runs whose verdict is known beforehand."""

import numpy as np
import pytest

from studies.elliott2015vision.observations import OBSERVATIONS, by_number
from studies.elliott2015vision.views import View, simulated_parts

BEST = "GPUSync(3,2,FIFO)"


class MadeUp(View):
    """Simulated runs, of which only what is given is known."""

    def __init__(self, latencies=None, delays=None, dropped=None):
        self.parts = simulated_parts()
        self._latencies, self._delays, self._dropped = latencies or {}, delays or {}, dropped or {}

    def latencies(self, name):
        return np.asarray(self._latencies.get(name, [1.0, 2.0]))

    def delays(self, name):
        return np.asarray(self._delays.get(name, [1.0]))

    def dropped(self, names):
        return {name: self._dropped.get(name, 0.0) for name in names}

    def overload(self):
        return ""

    def far_behind(self, names, periods=10):
        return "unknown"


def verdict(number, **runs):
    return by_number(number).judge(MadeUp(**runs)).verdict


def test_the_table_has_each_observation_once_with_its_criterion():
    assert [one.number for one in OBSERVATIONS] == list(range(28, 45))
    assert all("; partly: " in one.criterion for one in OBSERVATIONS)


@pytest.mark.parametrize(
    ("spread", "expected"), [(0.19, "reproduced"), (0.39, "partly reproduced"), (0.41, "not reproduced")]
)
def test_latencies_are_alike_only_where_their_percentiles_are_near(spread, expected):
    """All percentiles of one configuration lie apart from those of the three others, the 99th further."""
    others = np.linspace(1, 2, 1000)
    apart = others * (1 + spread / (1 - spread / 4))  # of the mean of the four, which it raises by a quarter
    apart[980:] *= 3
    assert verdict(38, latencies=dict.fromkeys(View(RUNS).many, others) | {BEST: apart}) == expected


def test_the_worst_case_is_judged_by_the_greatest_latency_and_by_no_threshold_of_the_best_itself():
    """Of the best all but a thousandth are early; that thousandth is what counts."""
    early = np.append(np.full(999, 1.0), 30.0)
    assert verdict(42, latencies={BEST: early}) == "not reproduced"
    late = np.array([1.0, 40.0])
    assert verdict(42, latencies=dict.fromkeys(View(RUNS).all, late) | {BEST: early}) == "reproduced"


@pytest.mark.parametrize("number", [28, 36, 39])
def test_configurations_to_which_a_parameter_was_fitted_are_not_judged(number):
    """With (1,6) as bad or as good as can be, the verdict is that of (2,3)."""
    parts = simulated_parts()
    bad = {"latencies": [4000.0, 5000.0], "delays": [2.0, 2.0], "dropped": 40.0}
    good = {"latencies": [1.0, 2.0], "delays": [1.0, 1.0], "dropped": 0.0}
    found = {}
    for fitted in (bad, good):
        for few in (bad, good):
            runs = {
                kind: dict.fromkeys(parts.calibrated, fitted[kind]) | dict.fromkeys(parts.few, few[kind])
                for kind in bad
            }
            runs["dropped"]["SCHED_FIFO"] = few["dropped"]
            found.setdefault(str(few), set()).add(verdict(number, **runs))
    assert found == {str(bad): {"reproduced"}, str(good): {"not reproduced"}}


class _Simulated:
    kind = "simulated"


RUNS = _Simulated()
