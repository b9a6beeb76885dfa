"""The bandwidth lock from Python."""

import threading

import pytest

from laxity import gpu

MB = 1_000_000


def test_the_least_budget_counts_until_the_last_section_ends(tmp_path):
    with gpu.Arbitration.create("g", gpus=1, cpus=2, directory=tmp_path) as car:
        assert car.bandwidth_budget is None
        with car.client("detector") as me:
            with me.lock_bandwidth("64 MB/s") as outer:
                assert (outer.budget, car.bandwidth_budget) == (64 * MB, 64 * MB)
                with me.lock_bandwidth("16 MB/s"):
                    assert car.bandwidth_budget == 16 * MB
                assert car.bandwidth_budget == 64 * MB
            outer.release()
            with pytest.raises(gpu.UseError, match="the section has ended; begin another"), outer:
                pytest.fail("entered without the lock")
            assert car.bandwidth_budget is None
            forgotten = me.lock_bandwidth("1 GB/s")
            assert car.bandwidth_budget == 1_000 * MB
            del forgotten
            assert car.bandwidth_budget is None
            held = me.lock_bandwidth("2 GB/s")
        assert car.bandwidth_budget is None, "it went with its client"
        held.release()
        with pytest.raises(gpu.UseError, match="it is released"), held:
            pytest.fail("entered without the client")
        car.count_traffic(4096)


def test_a_section_belongs_to_its_thread_and_needs_a_rate(tmp_path):
    with gpu.Arbitration.create("g", gpus=1, cpus=2, directory=tmp_path) as car, car.client("detector") as me:
        for text in ["64", "64 MB", "soon"]:
            with pytest.raises(gpu.ConfigError):
                me.lock_bandwidth(text)
        raised = []

        def other():
            try:
                me.lock_bandwidth("1 MB/s")
            except gpu.UseError as error:
                raised.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert len(raised) == 1
        assert car.bandwidth_budget is None
