"""Video stabilizers that run at once on this machine, as the study elliott2015vision and the demo want them.

`configuration` says how they may be scheduled and their soft GPU managed, `run` starts them, waits and collects,
`load` finds how short periods may be here, `processes` sees to it that nothing is left.
"""

from studies.elliott2015vision.stabilizers.configuration import (
    Configuration,
    Instance,
    Programs,
    Stabilizers,
    Virtual,
    configurations,
    cpus,
    managed,
)
from studies.elliott2015vision.stabilizers.load import Load, Probe, measure_load
from studies.elliott2015vision.stabilizers.processes import Processes
from studies.elliott2015vision.stabilizers.run import Attempt, FailedError, Order, Ran, Spent, tried

__all__ = [
    "Attempt",
    "Configuration",
    "FailedError",
    "Instance",
    "Load",
    "Order",
    "Probe",
    "Processes",
    "Programs",
    "Ran",
    "Spent",
    "Stabilizers",
    "Virtual",
    "configurations",
    "cpus",
    "managed",
    "measure_load",
    "tried",
]
