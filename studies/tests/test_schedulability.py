"""The schedulability studies: the same file however the work was split; statistics; claims; pages."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest
from laxity import LaxityError
from laxity._native import Study

from studies.__main__ import main
from studies.brandenburg2009gedf import claims as gedf
from studies.common.claims import graded
from studies.common.plan import plan
from studies.common.report import publish
from studies.common.results import Results
from studies.common.run import run
from studies.common.statistics import last_crossing, wilson
from studies.common.store import Store, import_csv
from studies.elliott2012klmirqd import claims as klmirqd

SMALL = {"scenarios": range(6, 9), "step": 26, "replicates": 12}
"""Three heavy scenarios of the first study at six points: a fraction of a second."""


def small(chunk=None):
    return plan("brandenburg2009gedf", chunk=chunk, **SMALL)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The result of the small plan, in one piece a point."""
    return run(small(12), tmp_path_factory.mktemp("reference"), threads=1).read_bytes()


@pytest.mark.parametrize("chunk", [1, 5])
def test_the_result_does_not_depend_on_chunks_and_threads(reference, tmp_path, chunk):
    assert run(small(chunk), tmp_path, threads=2).read_bytes() == reference


def test_the_counts_are_those_of_the_chunks(tmp_path):
    what = small(7)
    table = pq.read_table(run(what, tmp_path))
    study = Study(what.study, what.options)
    first = {"scenario": study.scenarios[6], "graph": "hard", "curve": "CEm", "x_thousandths": what.points[3]}
    row = next(row for row in table.to_pylist() if first.items() <= row.items())
    whole = study.evaluate(6, what.points[3], 0, 12).to_pylist()
    expected = next(part for part in whole if study.curves[part["curve"]] == ("hard", "CEm"))
    for column in ("sets", "accepted", "undecided", "weight", "weight_accepted"):
        assert row[column] == expected[column]
    assert row["low"] <= row["fraction"] <= row["high"]


def test_a_stopped_run_goes_on_and_looks_only_at_what_is_missing(reference, tmp_path):
    what = small(4)
    store = Store(tmp_path, what)
    study = Study(what.study)
    for chunk in what.chunks()[:20]:
        store.write(chunk, study.evaluate(chunk.scenario, chunk.point, chunk.first, chunk.count))
    done = {path: path.stat().st_mtime_ns for path in store.parts.iterdir()}
    assert len(store.missing()) == len(what.chunks()) - 20
    # What a killed process may leave behind.
    (store.parts / ".s006-p001000-r000000-n000004.parquet.123").write_bytes(b"half a fi")
    assert run(what, tmp_path).read_bytes() == reference
    assert all(path.stat().st_mtime_ns == written for path, written in done.items())


def test_kill_9_at_any_moment_loses_only_unfinished_chunks(tmp_path):
    """Kills the command once a few parts are there, starts it again, and compares with a run in one piece."""
    arguments = ["brandenburg2009gedf", "--scenarios", "7..8", "--step", "5", "--replicates", "60", "--chunk", "5"]
    command = [sys.executable, "-m", "studies", *arguments, "--figures", "none", "--threads", "1"]
    folder = tmp_path / "killed"
    process = subprocess.Popen([*command, "--out", str(folder)], stderr=subprocess.DEVNULL)
    while process.poll() is None and len(list(folder.glob("parts/s*"))) < 5:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it was killed before it was done"
    kept = len(list(folder.glob("parts/s*")))
    assert kept >= 5
    assert not (folder / "result.parquet").exists()
    assert main([*arguments, "--out", str(folder), "--figures", "none"]) == 0
    assert main([*arguments, "--out", str(tmp_path / "whole"), "--figures", "none", "--chunk", "60"]) == 0
    whole = (tmp_path / "whole" / "result.parquet").read_bytes()
    assert (folder / "result.parquet").read_bytes() == whole


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "studies", "brandenburg2009gedf", "--chunk", "20", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and len(list(tmp_path.glob("parts/s*"))) < 2:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "the same command goes on" in said
    assert "Traceback" not in said


def test_a_folder_of_another_run_is_refused(tmp_path):
    run(small(12), tmp_path)
    with pytest.raises(LaxityError, match="different replicates"):
        run(plan("brandenburg2009gedf", **{**SMALL, "replicates": 13}), tmp_path)
    with pytest.raises(LaxityError, match="different options"):
        run(plan("brandenburg2009gedf", "soft=task-centric", **SMALL), tmp_path)


def test_dask_gives_the_same_file_also_when_a_worker_is_killed(reference, tmp_path):
    distributed = pytest.importorskip("distributed")
    what = small(1)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        victims = [worker.pid for worker in cluster.workers.values()]
        killed = []

        class Killing(Store):
            """Kills a worker when a third of the parts is there."""

            def write(self, chunk, counts):
                super().write(chunk, counts)
                if not killed and len(list(self.parts.iterdir())) > len(what.chunks()) // 3:
                    killed.append(victims[0])
                    os.kill(victims[0], signal.SIGKILL)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("studies.common.run.Store", Killing)
            result = run(what, tmp_path, dask=cluster.scheduler_address)
    assert killed
    assert result.read_bytes() == reference


def test_a_dask_worker_needs_the_package_and_no_checkout(reference, tmp_path):
    """A worker like that of another machine: its own process, in a folder without the studies."""
    distributed = pytest.importorskip("distributed")
    (tmp_path / "elsewhere").mkdir()
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, silence_logs=50) as cluster:
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--no-dashboard"]
        with subprocess.Popen(worker, cwd=tmp_path / "elsewhere", stderr=subprocess.DEVNULL) as process:
            try:
                result = run(small(12), tmp_path / "out", dask=cluster.scheduler_address)
            finally:
                process.terminate()
    assert result.read_bytes() == reference


def test_counts_of_the_rust_example_are_imported(reference, tmp_path):
    what = small(12)
    study = Study(what.study, what.options)
    scenarios, curves = study.scenarios, study.curves
    columns = [
        "scenario",
        "graph",
        "curve",
        "x_thousandths",
        "sets",
        "accepted",
        "undecided",
        "weight",
        "weight_accepted",
    ]
    for part in range(2):
        with (tmp_path / f"part{part}.csv").open("w", newline="") as out:
            out.write(f"# study={study.name} options={study.options}\n")
            writer = csv.writer(out)
            writer.writerow(columns)
            for scenario in what.scenarios:
                for point in what.points:
                    for row in study.evaluate(scenario, point, 6 * part, 6).to_pylist():
                        writer.writerow([scenarios[scenario], *curves[row["curve"]], row["x"], *list(row.values())[3:]])
    store = Store(tmp_path / "out", what)
    result = import_csv(store, [tmp_path / "part0.csv", tmp_path / "part1.csv"])
    assert result.read_bytes() == reference
    with pytest.raises(LaxityError, match="36 task sets, expected 72" if len(what.points) == 6 else "expected"):
        import_csv(store, [tmp_path / "part0.csv"])
    other = Store(tmp_path / "other", plan(what.study, "soft=task-centric", **SMALL))
    with pytest.raises(LaxityError, match="soft=task-centric"):
        import_csv(other, [tmp_path / "part0.csv"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["brandenburg2009gedf", "--options", "soft=both"], "soft=task-centric, soft=preemption-centric"),
        (["brandenburg2009gedf", "--scenarios", "17..19"], "18 of brandenburg2009gedf"),
        (["elliott2012klmirqd", "--replicates", "-1"], "replicates is -1"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_way_out(arguments, says, tmp_path, capsys):
    assert main([*arguments, "--out", str(tmp_path)]) == 2
    assert says in capsys.readouterr().err


def test_wilson_intervals_are_those_of_the_literature():
    """Newcombe, Statistics in Medicine 17 (1998), table I, method 3 (score)."""
    expected = {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }
    for (accepted, total), ends in expected.items():
        fraction, low, high = wilson([accepted], [total])
        assert fraction[0] == accepted / total
        assert (round(low[0], 4), round(high[0], 4)) == ends


def test_a_curve_holds_up_to_where_it_falls_for_good():
    x, y = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, 0.8, 0.95, 0.45, 0.0])
    assert last_crossing(x, y, 0.9) == pytest.approx(3.1)
    assert last_crossing(x, y, 0.45) == 4.0
    assert last_crossing(x, y, 0.0) == 5.0
    assert np.isnan(last_crossing(x, y, 1.01))


def test_claims_are_graded_by_the_share_of_cases():
    assert [graded(count, 10) for count in (10, 9, 8, 5, 4)] == [
        "reproduced", "reproduced", "partly reproduced", "partly reproduced", "not reproduced",
    ]  # fmt: skip


def test_the_figures_are_numbered_as_in_the_papers():
    numbers = [number for hard, soft, _, _ in gedf.COMPARISONS for number in (hard, soft) if number is not None]
    covered = sorted(number + offset for number in numbers for offset in range(6))
    assert covered == list(range(30, 156)), "126 figures, each once"
    rows = [klmirqd.first_figure(d, s) for d in range(6) for s in range(4)]
    assert sorted(rows) == list(range(95, 335, 10))
    assert (klmirqd.first_figure(2, 3), klmirqd.first_figure(3, 0), klmirqd.first_figure(5, 3)) == (205, 215, 325)


@pytest.fixture(scope="module", params=("brandenburg2009gedf", "elliott2012klmirqd"))
def quick(request, tmp_path_factory):
    """A study with --quick: run, checked, drawn."""
    folder = tmp_path_factory.mktemp(request.param)
    assert main([request.param, "--quick", "--out", str(folder)]) == 0
    return folder


def test_quick_ends_with_a_page_that_has_every_claim_and_figure(quick):
    page, text = (quick / "index.html").read_text(), (quick / "index.md").read_text()
    claims = list(csv.DictReader((quick / "claims.csv").read_text().splitlines()))
    module = gedf if "brandenburg" in str(quick) else klmirqd
    assert [row["claim"] for row in claims] == [claim.key for claim in module.CLAIMS]
    for row in claims:
        assert row["paper"] in text
        assert row["verdict"] in {"reproduced", "partly reproduced", "not reproduced", "undecided"}
        assert row["verdict"] != "not reproduced" or row["why"] or row["hypothesis"], (
            "what does not reproduce has a reason"
        )
    assert "A reduced run" in text
    figures = sorted((quick / "figures").glob("*.svg"))
    assert len(figures) == (15 if module is gedf else 8)
    for figure in figures:
        assert f"figures/{figure.name}" in page
        assert f"figures/{figure.name}" in text
        ElementTree.parse(figure)
        assert figure.with_suffix(".png").stat().st_size > 10_000


def test_quick_agrees_with_the_papers_where_few_task_sets_tell(quick):
    verdicts = {row["claim"]: row["verdict"] for row in csv.DictReader((quick / "claims.csv").read_text().splitlines())}
    if "brandenburg" in str(quick):
        expected = ("cq1-hard", "cq1-soft", "hem-hard", "fem", "best", "best-fe1", "dedicated-long")
    else:
        expected = ("order", "disparity", "pai")
    assert {key: verdicts[key] for key in expected} == dict.fromkeys(expected, "reproduced")


def test_what_the_repository_keeps_is_the_page_and_its_figures(reference, tmp_path):
    (tmp_path / "result.parquet").write_bytes(reference)
    publish(tmp_path / "result.parquet", tmp_path / "kept")
    text = (tmp_path / "kept" / "README.md").read_text()
    figures = sorted((tmp_path / "kept" / "figures").iterdir())
    assert [figure.name for figure in figures] == ["figure-003.svg", "figure-022.svg", "figure-028.svg"]
    assert all(f"figures/{figure.name}" in text for figure in figures)
    weighted = list(csv.DictReader((tmp_path / "kept" / "weighted.csv").read_text().splitlines()))
    assert len(weighted) == 3 * 28
    assert weighted[0]["scenario"] == "uni-heavy/short"


def test_verdicts_are_tabulated_by_option(tmp_path, capsys):
    small = ["--scenarios", "0..1", "--step", "60", "--replicates", "2"]
    assert main(["brandenburg2009gedf", "--by-option", *small, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "by-option.md")
    rows = list(csv.DictReader((tmp_path / "by-option.csv").read_text().splitlines()))
    columns = ["default", *gedf.ALTERNATIVES]
    assert [row["options"] for row in rows] == [name for name in columns for _ in gedf.CLAIMS]
    header = next(line for line in (tmp_path / "by-option.md").read_text().splitlines() if line.startswith("| Claim"))
    assert header.count("|") == len(columns) + 2
    for name in columns:
        run = json.loads((tmp_path / name.replace("=", "-") / "run.json").read_text())
        assert name == "default" or name in run["options"].split()


def test_every_option_is_in_the_table_of_verdicts():
    for module, study in ((gedf, "brandenburg2009gedf"), (klmirqd, "elliott2012klmirqd")):
        own = dict(word.split("=") for word in Study(study).options.split())
        assert {name.split("=")[0] for name in module.ALTERNATIVES} == set(own)
        assert all(own[key] != value for key, value in (name.split("=") for name in module.ALTERNATIVES))


def test_a_result_says_what_was_run(quick):
    results = Results(quick / "result.parquet")
    assert results.run == json.loads((quick / "run.json").read_text())
    assert results.scenarios == Study(results.run["study"]).scenarios
    curve = results.curve(results.scenarios[0], *Study(results.run["study"]).curves[0])
    assert np.all(np.diff(curve.x) > 0)
    assert np.all((curve.low <= curve.y) & (curve.y <= curve.high))
    assert 0.0 <= curve.weighted <= 1.0


def test_a_csv_file_that_is_not_there_is_bad_usage_and_leaves_nothing(tmp_path, capsys):
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as ended:
        main(["brandenburg2009gedf", "--out", str(out), "--import", str(tmp_path / "nofile.csv")])
    assert ended.value.code == 2
    assert "nofile.csv is no file" in capsys.readouterr().err
    assert not out.exists()
