"""The baseline of bench-sim: SimSo's global EDF on the workload given on standard input.

Reads {"cpus": m, "duration_ns": d, "tasks": [[wcet_ns, period_ns], ...]} and prints
{"jobs": completed jobs, "cpu_seconds": CPU time of the simulation alone}.
"""

import json
import sys
import time

from simso.configuration import Configuration
from simso.core import Model

NS_PER_MS = 1_000_000

request = json.load(sys.stdin)
configuration = Configuration()
configuration.duration = request["duration_ns"]
configuration.cycles_per_ms = NS_PER_MS
configuration.etm = "wcet"
for index, (wcet_ns, period_ns) in enumerate(request["tasks"], start=1):
    configuration.add_task(
        name=f"t{index}",
        identifier=index,
        period=period_ns / NS_PER_MS,
        activation_date=0,
        wcet=wcet_ns / NS_PER_MS,
        deadline=period_ns / NS_PER_MS,
        abort_on_miss=False,
    )
for index in range(1, request["cpus"] + 1):
    configuration.add_processor(name=f"cpu{index}", identifier=index)
configuration.scheduler_info.clas = "simso.schedulers.EDF2"
configuration.check_all()

started = time.process_time()
model = Model(configuration)
model.run_model()
cpu_seconds = time.process_time() - started

jobs = sum(1 for task in model.results.tasks.values() for job in task.jobs if job.end_date is not None)
json.dump({"jobs": jobs, "cpu_seconds": cpu_seconds}, sys.stdout)
