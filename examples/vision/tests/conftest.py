"""What tests of the stabilizer share: configurations to run it under."""

import os
import signal
import subprocess

import pytest
from stabilizer import LAXITY, need

# Options of `laxity gpu create`; (rho, f, order of engines) as in paper 003, with rho f = 2 CPUs.
ARBITRATIONS = {
    f"({tokens},{length},{name})": ["--tokens", str(tokens), "--fifo-length", str(length), "--engine-order", order]
    for tokens, length in [(1, 2), (2, 1)]
    for name, order in [("FIFO", "fifo"), ("PRIO", "priority")]
}


@pytest.fixture(params=["other", "fifo", "deadline"])
def scheduler(request):
    """A scheduler that Linux permits."""
    need(request.param)
    return request.param


@pytest.fixture(params=["no GPU", "soft GPU", *ARBITRATIONS])
def gpu(request):
    """Options for where nodes for a GPU work."""
    name = f"stabilizer-test-{os.getpid()}"
    if request.param == "no GPU":
        yield []
    elif request.param == "soft GPU":
        yield ["--gpu", f"soft:{name}"]
    else:
        rules = ["--gpus", "1", "--cpus", "2", *ARBITRATIONS[request.param]]
        with subprocess.Popen([LAXITY, "gpu", "create", name, *rules], stdout=subprocess.PIPE, text=True) as process:
            assert name in process.stdout.readline()  # said when it is there
            yield ["--gpu", f"soft:{name}", "--arbitration", name]
            process.send_signal(signal.SIGINT)
