"""How tests wait for what other threads and processes do."""

import time


def wait_until(condition):
    """Until another thread or process got there, however long that takes."""
    while not condition():
        time.sleep(0.002)
