"""What tests of the stabilizer share."""

import pytest
from stabilizer import refusal


@pytest.fixture(params=["other", "fifo", "deadline"])
def scheduler(request):
    """A scheduler that Linux permits."""
    code, message = refusal("--period", "20ms", "--frames", 1, "--scheduler", request.param)
    if code == 1:
        pytest.skip(f"skipped: {message}")
    return request.param
