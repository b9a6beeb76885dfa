"""Generated task sets: by name and seed, whatever the number of threads."""

from decimal import Decimal

import pytest

import laxity


def test_a_generator_and_a_seed_name_one_task_set():
    one = laxity.generate("uni-light/moderate", cap=2, seed=7, cpus=4)
    assert one.provenance == "uni-light/moderate cap=2 seed=7 laxity-gen 1"
    assert (one.name, one.cpus, one.scheduler) == ("uni-light/moderate cap=2 seed=7", 4, "G-EDF/CEm")
    assert laxity.generate("uni-light/moderate cap=2", seed=7, cpus=4) == one
    assert laxity.generate("uni-light/moderate", cap=2, seed=8, cpus=4).tasks != one.tasks
    # The task that would exceed the cap ends the set; it has a utilization of at most 0.1.
    assert 1.9 < one.utilization <= 2


def test_parameters_are_numbers_texts_or_one_value_a_task():
    texts = laxity.generate("dirichlet-rescale/short", n=3, total="1", max="0.3,0.4,0.5", seed=1)
    for total in (1, 1.0, Decimal(1)):
        assert laxity.generate("dirichlet-rescale/short", n=3, total=total, max=[0.3, 0.4, 0.5], seed=1) == texts
    assert "total=0.3 " in laxity.generate("randfixedsum/short", n=3, total=0.1 + 0.2, seed=1).provenance


def test_what_cannot_be_drawn_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"cap 0\.2 on total utilization"):
        laxity.generate("uni-heavy/short", cap=0.2, seed=1)
    with pytest.raises(ValueError, match="unknown utilizations `uni-lite`"):
        laxity.generate("uni-lite/short", cap=1, seed=1)
    with pytest.raises(ValueError, match="unknown, repeated or unfinished parameter `cup=1`"):
        laxity.generate("uni-light/short", cap=1, cup=1, seed=1)
    with pytest.raises(ValueError, match='unknown platform "cray"'):
        laxity.generate("uni-light/short", cap=1, seed=1, platform="cray")
    with pytest.raises(TypeError, match="True is no number"):
        laxity.generate("uni-light/short", cap=True, seed=1)
    with pytest.raises(OverflowError):
        laxity.generate("uni-light/short", cap=1, seed=-1)


def test_gpu_tasks_come_with_their_machine():
    line = "exp-heavy/multimedia cap=8 gpu=0.2..0.3 part=0.8 transfer=0.2 interrupts=3"
    workload = laxity.generate(line, seed=1, platform="klmirqd")
    assert workload.cpus == 12
    engines = laxity.simulate(workload, duration="200 ms", arbitration="k_fmlp", handling="klmirqd").engines
    assert engines.num_rows == 2 * len(set(engines["gpu"].to_pylist())) == 16, "one copy engine each"
    assert sum(engines["operations"].to_pylist()) > 0
    with pytest.raises(laxity.WorkloadError):
        laxity.generate(line, seed=1, cpus=4)


@pytest.mark.parametrize("threads", [1, 2, 7, None])
def test_many_sets_do_not_depend_on_the_number_of_threads(threads):
    sets = laxity.generate_many("bimo-medium/long", 40, cap=3, seed=5, point=2, cpus=4, threads=threads)
    assert sets == laxity.generate_many("bimo-medium/long", 40, cap=3, seed=5, point=2, cpus=4, threads=3)
    assert len({one.provenance for one in sets}) == 40
    # Neither does a set depend on the others.
    assert sets[:10] == laxity.generate_many("bimo-medium/long", 10, cap=3, seed=5, point=2, cpus=4)
    assert sets[0] != laxity.generate_many("bimo-medium/long", 1, cap=3, seed=5, point=3, cpus=4)[0]


def test_a_stored_provenance_replays_its_set():
    drawn = laxity.generate_many("exp-light/short", 3, cap=2, seed=1, cpus=2)[2]
    line, seed = drawn.provenance.removesuffix(" laxity-gen 1").split(" seed=")
    assert laxity.generate(line, seed=int(seed), cpus=2) == drawn


def test_no_threads_at_all_are_refused():
    with pytest.raises(ValueError, match="threads=0 would do nothing"):
        laxity.generate_many("exp-light/short", 3, cap=2, seed=1, threads=0)
