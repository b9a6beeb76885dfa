"""A process that holds a GPU, to be killed: `python gpu_worker.py token|engine DIRECTORY`."""

import sys
import time

from laxity import gpu

if __name__ == "__main__":
    what, folder = sys.argv[1:]
    with gpu.Arbitration.attach("car", directory=folder) as car, car.client("victim", 5) as me, me.token() as token:
        engine = token.execution_engine() if what == "engine" else None
        print("holds", flush=True)
        time.sleep(3600)
