"""What all tests of studies need."""

import signal

import matplotlib as mpl
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True, scope="session")
def interruptible():
    """Ctrl-C is heard even where a shell started the tests in its background, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
