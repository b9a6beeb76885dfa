"""The report: every number on the page is one of the data, every link leads somewhere, and it fits a phone."""

import csv
import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from laxity import report
from laxity.report.__main__ import main

RESULTS = Path(__file__).parent / "report"
"""Three seconds of three stabilizers and six of a workload, measured on two CPUs; two frames were taken out by hand."""

WAYS = ("other", "fifo")
OUTSIDE = "https://ui.perfetto.dev"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Page(HTMLParser):
    """What a reader finds: links, embedded things, and the texts of tables by their ids."""

    def __init__(self, text):
        super().__init__()
        self.links, self.sources, self.tables, self.ids = [], [], {}, []
        self._table, self._cell = None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        if tag == "a":
            self.links.append(given["href"])
        self.sources += [given[name] for name in ("src", "srcset", "data", "poster") if name in given]
        self.sources += [given["href"]] if tag in ("link", "image", "script") and "href" in given else []
        if tag == "table":
            self._table = self.tables.setdefault(given.get("id", ""), [])
        elif tag == "tr":
            self._table.append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._table[-1].append("".join(self._cell).strip())
            self._cell = None

    def handle_data(self, data):
        if self._cell is not None:
            self._cell.append(data)


@pytest.fixture(scope="module")
def text():
    return report.render(report.read(RESULTS))


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


@pytest.fixture
def copy(tmp_path):
    """The results, to be changed."""
    return Path(shutil.copytree(RESULTS, tmp_path / "results"))


def change(folder, change_run):
    told = json.loads((folder / "run.json").read_text())
    change_run(told)
    (folder / "run.json").write_text(json.dumps(told))


def times(way, name):
    """Release and completion of each frame in us, by other code than the report's."""
    with (RESULTS / "video" / way / f"{name}.csv").open() as file:
        rows = [(int(row["release_us"]), int(row["completion_us"])) for row in csv.DictReader(file)]
    return np.array(rows)


def instances():
    told = json.loads((RESULTS / "run.json").read_text())["video"]
    return told["duration_ns"], {one["name"]: one["period_ns"] for one in told["instances"]}


def rounded(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def nearest_rank(values, fraction):
    """The smallest value that so many are no larger than."""
    return sorted(values)[int(np.ceil(fraction * len(values))) - 1]


def numbers(values):
    return [
        max(values),
        nearest_rank(values, 0.999),
        nearest_rank(values, 0.99),
        nearest_rank(values, 0.5),
        sum(values) / len(values),
        float(np.sqrt(np.mean((values - np.mean(values)) ** 2))),
    ]


def test_the_table_of_all_stabilizers_has_means_of_numbers_in_periods(page):
    duration_ns, periods = instances()
    rows = page.tables["totals"]
    for column, way in enumerate(WAYS, start=1):
        frames = {name: times(way, name) for name in periods}
        expected = sum(duration_ns // period for period in periods.values())
        completed = sum(len(one) for one in frames.values())
        shown = [row[column] for row in rows[1:] if len(row) > 1]
        assert shown[:3] == [f"{expected:,}", f"{completed:,}", f"{expected - completed:,}"]
        delays = [numbers(np.diff(one[:, 1]) * 1000 / periods[name]) for name, one in frames.items()]
        latencies = [numbers((one[:, 1] - one[:, 0]) * 1000 / periods[name]) for name, one in frames.items()]
        assert shown[3:] == [rounded(value) for value in [*np.mean(delays, axis=0), *np.mean(latencies, axis=0)]]


def test_the_table_by_period_has_the_frames_of_a_period_together(page):
    duration_ns, periods = instances()
    rows = iter(page.tables["periods"][2:])
    for period in sorted(set(periods.values())):
        names = [name for name in periods if periods[name] == period]
        for way in WAYS:
            row = next(rows)[3:]
            frames = [times(way, name) for name in names]
            expected, completed = len(names) * (duration_ns // period), sum(map(len, frames))
            assert row[:2] == [f"{expected:,}", f"{completed:,}"]
            dropped = expected - completed
            assert row[2] == (f"{100 * dropped / expected:.2f} %" if dropped else "0 %")
            delays = np.concatenate([np.diff(one[:, 1]) for one in frames]) / 1000
            assert row[3:9] == [rounded(value) for value in numbers(delays)]
            latencies = np.concatenate([one[:, 1] - one[:, 0] for one in frames]) / 1000
            longest, _, p99, median, *_ = numbers(latencies)
            assert row[9:] == [rounded(value) for value in (median, p99, longest)]


def test_what_the_command_says_of_a_workload_stands_on_the_page(text):
    part = (RESULTS / "workload" / "part.html").read_text()
    assert part in text
    verdict = re.search(r'class="verdict".*?</section>', text, re.DOTALL)[0]
    assert "rover: Proven: every job meets its deadline" in verdict
    assert text.count("<h3>Response times, ms</h3>") == 1


def test_shares_of_the_cpus_are_a_table_with_a_row_for_each_name(copy):
    def shares(told):
        told["video"]["configurations"][0]["cpu_time"] = [{"name": "the stabilizers", "share": 0.4}]
        told["video"]["configurations"][1]["cpu_time"] = [
            {"name": "the stabilizers", "share": 0.5},
            {"name": "the soft GPU's server", "share": 0.1234},
        ]

    assert "cpu-time" not in Page(report.render(report.read(copy))).tables
    change(copy, shares)
    rows = Page(report.render(report.read(copy))).tables["cpu-time"][1:]
    assert rows == [["the stabilizers", "40.0 %", "50.0 %"], ["the soft GPU's server", "-", "12.3 %"]]


def test_the_verdict_has_the_numbers_of_the_table(page, text):
    verdict = re.search(r'class="verdict".*?</section>', text, re.DOTALL)[0]
    longest = page.tables["totals"][6]
    assert longest[0] == "longest"
    assert f"{longest[1]} periods under SCHED_OTHER and {longest[2]} under SCHED_FIFO ({longest[3]})" in verdict
    dropped = page.tables["totals"][4]
    assert f"SCHED_OTHER dropped {dropped[1]} of" in verdict
    assert "What shook by 18.8 px shakes by 0.57 px" in verdict
    assert "33.0 x less" in verdict


def test_a_verdict_says_so_where_the_last_way_is_worse(copy):
    change(copy, lambda told: told["video"]["configurations"].reverse())
    text = report.render(report.read(copy))
    verdict = re.search(r'class="verdict".*?</section>', text, re.DOTALL)[0]
    assert "x more" in verdict
    assert re.search(r"under SCHED_FIFO and .* under SCHED_OTHER", verdict)


def test_every_link_and_picture_is_there(page):
    assert len(page.links) == 4
    for link in page.links:
        assert link == OUTSIDE or (RESULTS / link).is_file()
    assert page.sources
    assert all(source.startswith(("data:", "#")) for source in page.sources)
    assert len(page.ids) == len(set(page.ids))


def test_the_page_needs_no_network(text):
    elsewhere = re.sub(r'xmlns(:xlink)?=("|%22)[^"%]*\2', "", text)
    outside = set(re.findall(r"""(?:https?:)?//[\w.-]+\.\w+""", elsewhere))
    assert outside <= {OUTSIDE}
    assert "@import" not in text


def test_what_is_missing_is_said_and_what_is_said_is_escaped(text):
    assert "a GPU &lt;soft&gt;: this folder is of a test, which has none &amp; says so" in text


@pytest.mark.parametrize("part", ["video", "stabilized", "workloads", "sections"])
def test_a_page_without_a_part_is_a_page(copy, part):
    change(copy, lambda told: told.pop(part))
    text = report.render(report.read(copy))
    assert "</html>" in text
    assert ('id="totals"' in text) == (part != "video")


HOSTILE = "<script>alert('$x$')</script>&\"_\x1b[31m"


def test_names_are_text_wherever_they_stand(copy):
    """In tables, alternative texts, links and plots: neither markup nor formulas."""

    def rename(told):
        for one in (*told["video"]["configurations"], *told["workloads"], *told["workloads"][0]["runs"]):
            one["name"] = HOSTILE
        told["workloads"][0]["runs"][0]["files"][0]["name"] = f"_{HOSTILE}"
        told["video"]["instances"][0]["name"] = "$a_b$"

    for way in WAYS:
        (copy / "video" / way / "G1.csv").rename(copy / "video" / way / "$a_b$.csv")
    change(copy, rename)
    text = report.render(report.read(copy))
    assert "<script" not in text
    assert "&lt;script&gt;alert" in text
    plots = re.findall(r"<svg role=\"img\" viewBox.*?</svg>", text, re.DOTALL)
    shown = ["".join(ElementTree.fromstring(plot).itertext()) for plot in plots]
    assert all("<script>alert('$x$')</script>" in one for one in shown)
    assert "$a_b$" in shown[1]
    ids = Page(text).ids
    assert len(ids) == len(set(ids))


def test_a_link_leads_to_the_file_of_that_name(copy):
    (copy / "workload" / "other.lxt").rename(copy / "workload" / "50% #1.lxt")
    change(copy, lambda told: told["workloads"][0]["runs"][0]["files"][0].update(file="workload/50% #1.lxt"))
    assert "workload/50%25%20%231.lxt" in Page(report.render(report.read(copy))).links


def test_frames_of_the_start_are_told_apart(copy):
    """The first second of three: G1 has a period of 41.4 ms, and its frame 25 is the first after the start."""
    change(copy, lambda told: told["video"].update(start_ns=1_000_000_000))
    duration_ns, periods = instances()
    results = report.read(copy)
    for way, configuration in zip(WAYS, results.video.configurations, strict=True):
        origin_us = min(times(way, name)[:, 0].min() for name in periods)
        for start, steady in zip(configuration.start, configuration.instances, strict=True):
            frames = times(way, start.name)
            in_start = frames[:, 0] < origin_us + 1_000_000
            assert (start.completed, steady.completed) == (in_start.sum(), (~in_start).sum())
            assert start.expected == -(-1_000_000_000 // start.period_ns)
            assert start.expected + steady.expected == duration_ns // start.period_ns
            assert steady.latencies_ns.max() == 1000 * np.diff(frames[~in_start], axis=1).max()
    text = report.render(results)
    rows = Page(text).tables["totals"]
    assert [row[0] for row in rows if len(row) == 1] == [
        "frames, after the start", "completion delay, periods, after the start", "latency, periods, after the start",
        "the first 1 s",
    ]  # fmt: skip
    longest = [
        np.mean([one.latencies_ns.max() / one.period_ns for one in c.start]) for c in results.video.configurations
    ]
    assert rows[-1][1:3] == [rounded(value) for value in longest]
    assert "without the first 1 s, which are told apart" in text


def test_a_stabilizer_without_a_frame_dropped_all_of_them(copy):
    for name in instances()[1]:
        (copy / "video" / "fifo" / f"{name}.csv").write_text("frame,release_us,completion_us\n")
    page = Page(report.render(report.read(copy)))
    expected, completed, dropped = (row[2] for row in page.tables["totals"][2:5])
    assert (completed, dropped) == ("0", expected)


def test_colours_follow_light_and_dark(text):
    plots = re.findall(r"<svg role=\"img\" viewBox.*?</svg>", text, re.DOTALL)
    assert len(plots) == 4
    assert not [colour for plot in plots for colour in re.findall(r"#[0-9a-f]{6}\b", plot)]


def test_a_file_that_was_cut_off_in_a_line_counts_up_to_there(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("frame,release_us,completion_us\n0,1000,1500\n1,2000,2500\n2,3000,35")
    frames = report.read_frames(path, "a", 1_000_000, 3_000_000)
    assert (frames.completed, frames.dropped) == (2, 1)
    assert frames.latencies_ns.tolist() == [500_000, 500_000]
    assert frames.delays_ns.tolist() == [1_000_000]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "a.csv:1: is no file of frames"),
        ("frame,release_us\n", "a.csv:1: is no file of frames"),
        ("frame,release_us,completion_us\n0,1,2\n1,x,3\n", "a.csv:3: 1,x,3: is not 3 whole numbers"),
        ("frame,release_us,completion_us\n0,1,2,3\n", "a.csv:2: 0,1,2,3: is not 3 whole numbers"),
        ("frame,release_us,completion_us\n0,5,4\n", "a.csv:2: completed at 4 us, before its release at 5 us"),
        ("frame,release_us,completion_us\n0,1,2\n1,1,2\n", "has 2 frames, but a period of 1000 ns has only 1"),
    ],
)
def test_a_bad_file_of_frames_is_refused_with_its_line(tmp_path, content, says):
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(report.ResultsError, match=re.escape(says)):
        report.read_frames(path, "a", 1_000, 1_999)


@pytest.mark.parametrize(
    ("change_run", "says"),
    [
        (lambda told: told.pop("machine"), '"machine" is missing; it should be an object'),
        (lambda told: told.update(date="soon"), '"date" is soon'),
        (lambda told: told.update(date="\x1b[2J"), r'"date" is \x1b[2J'),
        (lambda told: told["machine"].update(cpus=True), '"cpus" is True; it should be a whole number'),
        (lambda told: told["video"].update(instances=[]), "instances need periods"),
        (lambda told: told["video"].update(instances=[3]), "instances[0] is 3, not an object"),
        (lambda told: told["video"].update(configurations=[]), '"configurations" is empty'),
        (lambda told: told["video"].update(start_ns=3_000_000_000), "start of 3000000000 ns is not within"),
        (lambda told: told["workloads"][0]["runs"][0]["files"][0].update(file="gone"), "gone: is not there"),
        (lambda told: told["stabilized"].update(sheet="run.json"), "is no picture that a page can have"),
        (lambda told: told["workloads"][0].update(part="gone.html"), "gone.html: cannot be read"),
        (
            lambda told: told["workloads"][0]["runs"][0].update(cpu_time=[{"name": "us", "share": 1.5}]),
            "the share of CPU time of us is 1.5; it must be 0 to 1",
        ),
    ],
)
def test_a_bad_run_is_refused_by_name(copy, capsys, change_run, says):
    change(copy, change_run)
    assert main([str(copy)]) == 2
    assert says in capsys.readouterr().err
    assert not (copy / "report.html").exists()


def test_no_json_is_refused_with_its_line(copy, capsys):
    (copy / "run.json").write_text('{\n"laxity": }')
    assert main([str(copy)]) == 2
    assert "run.json:2:11: is no JSON" in capsys.readouterr().err


def test_the_command_writes_the_page_and_names_it(copy, capsys, text):
    assert main([str(copy)]) == 0
    assert capsys.readouterr().out == f"{copy / 'report.html'}\n"
    assert (copy / "report.html").read_text() == text
    assert not list(copy.glob(".*"))


# Frames of the width of a phone and of a screen. Where something sticks out, the whole document would scroll sideways;
# what is wide has a box of its own, which scrolls.
LOOKS = """<!doctype html><body>{frames}<script>
addEventListener("load", () => {{
  const found = [...document.querySelectorAll("iframe")].map(frame => {{
    const seen = frame.contentDocument;
    const box = seen.querySelector("#periods").parentElement;
    return {{
      width: frame.clientWidth,
      needed: seen.documentElement.scrollWidth,
      is_narrow: seen.defaultView.matchMedia("(max-width: 700px)").matches,
      table_scrolls: box.scrollWidth > box.clientWidth,
      pictures: [...seen.images].every(image => image.complete && image.naturalWidth > 0),
      columns: getComputedStyle(seen.querySelector(".plots")).gridTemplateColumns.split(" ").length,
    }};
  }});
  document.body.textContent = "found:" + JSON.stringify(found) + ":end";
}});
</script>"""


def test_a_browser_shows_it_on_a_phone_and_on_a_screen(copy, tmp_path):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("skipped: there is no browser; install Debian's package chromium")
        pytest.skip("there is no browser; install Debian's package chromium")
    report.write(copy, copy / "report.html")
    frames = [
        f'<iframe src="report.html" style="border:0;width:{width}px;height:800px"></iframe>' for width in (390, 1280)
    ]
    (copy / "looks.html").write_text(LOOKS.format(frames="".join(frames)))
    command = [browser, "--headless", "--disable-gpu", "--allow-file-access-from-files", "--no-first-run"]
    command += ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses to have one as root
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=10000", "--dump-dom"]
    done = subprocess.run([*command, (copy / "looks.html").as_uri()], capture_output=True, text=True, check=True)
    phone, screen = json.loads(re.search(r"found:(.*):end", done.stdout)[1])
    for shown in (phone, screen):
        assert shown["needed"] <= shown["width"]
        assert shown["pictures"]
    assert (phone["is_narrow"], phone["columns"], phone["table_scrolls"]) == (True, 1, True)
    assert (screen["is_narrow"], screen["columns"]) == (False, 2)
