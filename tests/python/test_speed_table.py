"""The README's table of speed has what the benchmarks' last lines have."""

import sys
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import speed

OUTPUT = """tasks cpus
  100   12
simulator jobs_per_cpu_s=4200000 traced_jobs_per_cpu_s=3000000 ratio_to_simso=310 fair_to_full=0.80
"""


def test_figures_of_benchmarks_that_ran_are_rows_and_others_are_left_out():
    name, values = speed.results(OUTPUT)
    text = speed.table({name: values}, "a machine", date(2030, 1, 2))
    assert text.splitlines()[2] == "| simulated jobs a second of CPU time, 100 tasks on 12 CPUs | 4,200,000 |"
    assert "| 310 times |" in text
    assert "futex" not in text
    assert text.endswith("Measured on 2030-01-02: a machine.")


def test_every_figure_is_printed_by_a_benchmark():
    """A key that was renamed in a benchmark would vanish from the table."""
    sources = (Path(__file__).parents[2] / "benches" / "src").glob("*.rs")
    text = "".join(source.read_text() for source in sources)
    assert [key for _, key, _, _ in speed.FIGURES if f"{key}=" not in text] == []
