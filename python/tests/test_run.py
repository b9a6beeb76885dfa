"""Live runs of workloads whose jobs call functions of this program."""

import array
import copy
import os
import pickle
import signal
import threading

import pytest

import laxity


@pytest.fixture
def fusion():
    """A camera that sends each frame to a detector, and a task beside them."""
    edge = {"from": "camera", "to": "detect", "message": "64 B"}
    nodes = [{"name": "camera", "period": "20 ms", "wcet": "1 ms"}, {"name": "detect", "wcet": "1 ms"}]
    graph = {"name": f"fusion-{os.getpid()}", "edge": [edge], "node": nodes}
    control = laxity.Task("control", wcet="1 ms", period="50 ms")
    return laxity.workload("fusion", cpus=1, tasks=[control], graphs=[graph], policy="P-RM")


def _graph(workload):
    return next(name for name in workload.to_json().split('"') if name.startswith("fusion-"))


def test_bodies_are_called_with_messages_in_place(fusion):
    graph, warm, got, threads = _graph(fusion), [], [], set()

    def camera(job):
        if job.is_warm_up:
            warm.append(job.task)
            return
        values = array.array("q", [job.index * 3, job.deadline_ns - job.release_ns])
        job.output("detect")[0][:16] = values.tobytes()
        job.output().resize(16)

    def detect(job):
        message = job.input("camera")[0]
        assert message.readonly
        got.append((job.index, *memoryview(bytes(message)).cast("q")))
        threads.add(threading.get_ident())

    bodies = {f"{graph}/camera": camera, f"{graph}/detect": detect}
    result = laxity.run(fusion, bodies, scheduler="other", duration="200 ms", trace=True, warm=[f"{graph}/camera"])
    assert warm == [f"{graph}/camera"]
    assert got == [(job, job * 3, 20_000_000) for job in range(10)]
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    counts = {task["name"]: task["completed"] for task in result.tasks.to_pylist()}
    assert counts == {"control": 4, f"{graph}/camera": 10, f"{graph}/detect": 10}
    assert (result.summary["origin"], result.trace.origin) == ("live", "live")
    assert result.summary["overheads"]["profile"] is None
    assert "live for" in repr(result)
    assert [found for found in result.trace.check() if found.checker == "legality"] == []
    # Nothing of the run is left, and there can be another.
    assert laxity.run(fusion, bodies, scheduler="other", duration="20 ms").total["completed"] == 3
    assert not [name for name in os.listdir("/dev/shm") if graph in name]


def test_an_object_is_made_and_closed_on_the_thread_of_its_task(pair):
    log = []

    class Fast:
        def __init__(self):
            log.append(("made", threading.get_ident()))

        def __call__(self, job):
            log.append((job.index, threading.get_ident()))

        def close(self):
            log.append(("closed", threading.get_ident()))

    laxity.run(pair, {"fast": Fast}, scheduler="other", duration="8 ms")
    assert [what for what, _ in log] == ["made", 0, 1, "closed"]
    assert len({thread for _, thread in log}) == 1


def test_what_a_close_raises_is_told_when_all_jobs_are_done(pair, capfd):
    class Fast:
        def __call__(self, job):
            pass

        def close(self):
            raise OSError("the disk is full")

    with pytest.raises(laxity.RunError, match=r"after its last job: its code failed: OSError") as raised:
        laxity.run(pair, {"fast": Fast}, scheduler="other", duration="8 ms")
    assert raised.value.result.tasks["completed"].to_pylist()[0] == 2
    assert "Traceback" in capfd.readouterr().err


def test_an_exception_ends_the_run_with_what_was_measured(pair, capfd):
    def fails(job):
        if job.index == 2:
            raise RuntimeError("the lens is dirty")

    with pytest.raises(laxity.RunError, match=r"job 2: its code failed: RuntimeError: the lens is dirty") as raised:
        laxity.run(pair, {"fast": fails}, scheduler="other", duration="10 s")
    assert raised.value.result.tasks["completed"].to_pylist()[0] == 2
    assert "Traceback" in capfd.readouterr().err


def test_what_cannot_be_run_is_refused(pair):
    with pytest.raises(laxity.RunError, match='no task or node "slower"; write one of fast, slow') as raised:
        laxity.run(pair, {"slower": print}, scheduler="other")
    assert raised.value.result is None
    with pytest.raises(laxity.RunError, match=r'task "fast": .* is no function, but 5'):
        laxity.run(pair, {"fast": 5}, scheduler="other")
    with pytest.raises(ValueError, match="write laxity, kernel, fifo, deadline or other"):
        laxity.run(pair, scheduler="idle")
    with pytest.raises(ValueError, match='warm: "slow" has no body'):
        laxity.run(pair, {"fast": print}, warm=["slow"])


async def _async(job):
    raise AssertionError


def _generator(job):
    yield job


async def _async_generator(job):
    yield job


@pytest.mark.parametrize("body", [_async, _generator, _async_generator])
def test_a_body_that_does_not_run_when_it_is_called_fails(pair, body, recwarn):
    with pytest.raises(laxity.RunError, match=r"job 0: its code failed: it has not run: its answer is of type \w+;"):
        laxity.run(pair, {"fast": body}, scheduler="other", duration="20 ms")
    assert [str(warning.message) for warning in recwarn if "awaited" in str(warning.message)] == []


def test_errors_of_bodies_name_the_task_and_nothing_inside_of_laxity(pair):
    class Camera:
        def __init__(self):
            raise RuntimeError("no lens")

        def __call__(self, job): ...

    with pytest.raises(laxity.RunError, match=r'^task "fast": its body is no function, but 5$'):
        laxity.run(pair, {"fast": 5}, scheduler="other")
    with pytest.raises(laxity.RunError, match=r'task "fast": .*RuntimeError: no lens') as raised:
        laxity.run(pair, {"fast": Camera}, scheduler="other")
    assert "_bodies" not in str(raised.value)


def test_a_message_is_sent_as_long_as_it_was_made(fusion):
    graph, lengths, errors = _graph(fusion), [], []

    def camera(job):
        job.output().resize(16)
        assert len(job.output()[0]) == 64, "of the view all can be written, still"
        for arguments in [(5, 3), (65,), (-1,)]:
            try:
                job.output().resize(*arguments)
            except (IndexError, ValueError) as error:
                errors.append(str(error))

    bodies = {f"{graph}/camera": camera, f"{graph}/detect": lambda job: lengths.append(len(job.input()[0]))}
    laxity.run(fusion, bodies, scheduler="other", duration="20 ms")
    assert lengths == [16]
    assert errors == [
        "message 3 is not among the 1 of 'detect'",
        "65 bytes do not fit into a message of 64",
        "-1 bytes do not fit into a message of 64",
    ]


def test_an_error_of_a_run_can_be_pickled_and_copied(pair):
    def fails(job):
        raise RuntimeError("the lens is dirty")

    with pytest.raises(laxity.RunError) as raised:
        laxity.run(pair, {"fast": fails}, scheduler="other", duration="20 ms")
    raised.value.add_note("in Tokyo")
    assert raised.value.result is not None
    for again in [pickle.loads(pickle.dumps(raised.value)), copy.copy(raised.value), copy.deepcopy(raised.value)]:
        assert type(again) is laxity.RunError
        assert (str(again), again.result, again.__notes__) == (str(raised.value), None, ["in Tokyo"])
    assert raised.value.result is not None


def test_ctrl_c_ends_a_run(pair):
    def interrupts(job):
        if job.index == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        laxity.run(pair, {"fast": interrupts}, scheduler="other", duration="10 min")


def test_code_that_the_workload_names_is_run_in_this_interpreter(tmp_path, monkeypatch):
    (tmp_path / "seen_by_laxity.py").write_text("jobs = []\n\n\ndef body(job):\n    jobs.append(job.index)\n")
    monkeypatch.syspath_prepend(tmp_path)
    task = {"name": "t", "period": "10 ms", "wcet": "1 ms", "run": {"python": "seen_by_laxity:body"}}
    named = laxity.workload("named", cpus=1, tasks=[task])
    laxity.run(named, scheduler="other", duration="30 ms")
    import seen_by_laxity  # noqa: PLC0415

    assert seen_by_laxity.jobs == []
    laxity.run(named, scheduler="other", duration="30 ms", folder=tmp_path)
    assert seen_by_laxity.jobs == [0, 1, 2]


def test_the_newest_value_of_a_latest_value_edge_is_handed_over():
    nodes = [{"name": "fast", "period": "10 ms", "wcet": "1 ms"}, {"name": "slow", "period": "40 ms", "wcet": "1 ms"}]
    name = f"latest-{os.getpid()}"
    graph = {"name": name, "node": nodes, "latest": ["fast -> slow"]}
    workload = laxity.workload("latest", cpus=1, graphs=[graph], policy="P-RM")
    sent, got = [], []

    def fast(job):
        edge = job.output("slow")
        assert len(edge[0]) == 65536
        text = b"%d" % job.index * (1 + job.index % 5)
        edge[0][: len(text)] = text
        edge.resize(len(text))
        sent.append(text)

    def slow(job):
        edge = job.input("fast")
        seen = [bytes(edge[number]) for number in range(len(edge))]
        # It stays, whatever completes meanwhile.
        got.append((seen, len(sent)))
        assert [bytes(edge[number]) for number in range(len(edge))] == seen

    result = laxity.run(workload, {f"{name}/fast": fast, f"{name}/slow": slow}, scheduler="other", duration="200 ms")
    assert result.tasks["completed"].to_pylist() == [20, 5]
    assert len(got) == 5
    assert all(len(seen) <= 1 for seen, _ in got)
    numbers = [sent.index(seen[0]) for seen, _ in got if seen]
    assert numbers, "sixteen jobs of `fast` are released before the last of `slow`"
    assert numbers == sorted(numbers)
    # What is seen was sent before, whole, and as long as it was.
    assert all(sent.index(seen[0]) < count for seen, count in got if seen)


@pytest.mark.parametrize("realization", ["CQm", "S-CQm", "HE1"])
def test_a_realization_that_is_not_there_is_replaced_with_a_warning(realization):
    two = laxity.workload("two", cpus=2, tasks=[laxity.Task("a", wcet="1 ms", period="10 ms")])
    with pytest.warns(RuntimeWarning, match=f"run as G-EDF/CEm, not as G-EDF/{realization}") as warned:
        result = laxity.run(two, policy=f"G-EDF/{realization}", scheduler="other", duration="20 ms")
    assert warned[0].filename == __file__
    assert result.summary["scheduler"] == "G-EDF/CEm"


def test_refusals_name_arguments_and_not_options_of_the_command():
    def refusal(**options):
        cpus = options.pop("cpus", 1)
        workload = laxity.workload("w", cpus=cpus, tasks=[laxity.Task("a", wcet="1 ms", period="5 ms")])
        with pytest.raises(laxity.RunError) as raised:
            laxity.run(workload, duration="50 ms", **options)
        return str(raised.value)

    assert 'take scheduler="laxity", or a policy with fixed priorities, as in policy="G-RM"' in refusal(
        scheduler="fifo", policy="G-EDF"
    )
    assert "fold it onto these (`laxity run --cpus " in refusal(cpus=1000)
