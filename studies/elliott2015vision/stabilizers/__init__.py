"""Video stabilizers that run at once on this machine, as the study elliott2015vision and the demo want them.

`configuration` says how they may be scheduled and their soft GPU managed, `run` starts them, waits and collects,
`load` finds how short periods may be here, `processes` sees to it that nothing is left.
"""

from laxity._stabilizers.configuration import Configuration, Instance, Programs, Stabilizers, configurations, cpus
from laxity._stabilizers.load import Load, Probe, measure_load
from laxity._stabilizers.processes import Processes
from laxity._stabilizers.run import Attempt, FailedError, Order, Ran, Spent, tried

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
    "configurations",
    "cpus",
    "measure_load",
    "tried",
]
