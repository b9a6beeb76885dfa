"""The Python of the guides, as it is written there, in order."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import laxity

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"


def blocks(guide, *sections):
    """Those of the sections of `guide`, each with its section."""
    text = (GUIDES / guide).read_text()
    parts = [(section, text.split(f"\n## {section}\n")[1].split("\n## ")[0]) for section in sections]
    return [
        (section, block) for section, part in parts for block in re.findall(r"```python\n(.*?)```", part, re.DOTALL)
    ]


def test_the_guide_to_python_works_as_it_is_written(tmp_path):
    # Sections on live graphs, GPUs and threads have tests of their own, beside what they take part in.
    shown = blocks("python.md", "A first simulation", "Workloads", "Many at once", "GPUs", "Traces", "Answers", "Plots")
    assert len(shown) == 8
    # A minute of search is for people, and so is a minute that is simulated under nine realizations.
    shorter = {
        'within="30 s"': 'within="1 s"',
        'duration="20 s"': 'duration="1 s"',
        'duration="10 s"': 'duration="1 s"',
    }
    code = "\n".join(block for _, block in shown)
    for long, short in shorter.items():
        code = code.replace(long, short)
    (tmp_path / "car.toml").write_text("laxity = 1\n")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    program = "import matplotlib\nmatplotlib.use('Agg')\n" + code
    program += (
        "\nassert dict(tuned.best[0].changes).get('scheduler', tuned.workload.scheduler) == tuned.workload.scheduler\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "comparison.svg").exists()


def test_the_guide_to_own_code_works_as_it_is_written(tmp_path, monkeypatch):
    (scan, program) = (block for _, block in blocks("own-code.md", "Python"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guide_lidar.py").write_text(scan)
    monkeypatch.syspath_prepend(tmp_path)
    nodes = [{"name": "lidar", "period": "33 ms", "wcet": "2 ms", "run": {"python": "guide_lidar:scan"}}]
    nodes += [{"name": "fuse", "wcet": "1 ms"}]
    edge = {"from": "lidar", "to": "fuse", "message": "16 kB"}
    seen = []
    fusion = laxity.workload("f", cpus=1, graphs=[{"name": "guide-fusion", "node": nodes, "edge": [edge]}])
    bodies = {"guide-fusion/fuse": lambda job: seen.append(memoryview(bytes(job.input()[0])).cast("f")[3999])}
    laxity.run(fusion, bodies, scheduler="other", duration="100 ms", folder=tmp_path)
    assert seen == [0, 1, 2, 3]
    (tmp_path / "car.toml").write_text(
        """laxity = 1
name = "car"
scheduler = "P-RM"
platform.cpus = 1
[[graph]]
name = "vision"
node = [{ name = "camera", period = "33 ms", wcet = "3 ms" }, { name = "detect", wcet = "3 ms" }]
edge = [{ from = "camera", to = "detect", message = "307200 B" }]
"""
    )
    ended = subprocess.run(
        [sys.executable, "-c", program.replace('"10 s"', '"1 s"')], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "vision/detect" in ended.stdout


@pytest.mark.parametrize("name", ["gpu", "live", "plots", "report", "sched", "vx"])
def test_subpackages_are_loaded_where_they_are_used(name):
    code = f"import sys, laxity; assert 'laxity.{name}' not in sys.modules; print(laxity.{name}.__name__)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == f"laxity.{name}\n"
