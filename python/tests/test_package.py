"""The package as such: documented, typed, and its stubs true."""

import inspect
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import laxity
from laxity import live, plots

HERE = Path(__file__).parents[1]


def _run(*command):
    done = subprocess.run([sys.executable, "-m", *command], cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_public_is_documented():
    undocumented = []
    for module in (laxity, live, plots):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.ismodule(thing) or isinstance(thing, str):
                continue
            if not inspect.getdoc(thing):
                undocumented.append(name)
            if inspect.isclass(thing) and not issubclass(thing, Exception):
                members = [member for member in vars(thing) if not member.startswith("_")]
                undocumented += [f"{name}.{member}" for member in members if _lacks_documentation(thing, member)]
    assert undocumented == []


def _lacks_documentation(owner, member):
    # The fields of dataclasses are documented by their class.
    is_field = member in getattr(owner, "__dataclass_fields__", {})
    return not is_field and not inspect.getdoc(getattr(owner, member))


def test_everything_public_is_there_and_listed():
    for module in (laxity, live, plots):
        for name in module.__all__:
            assert getattr(module, name) is not None
    public = {name for name in vars(laxity) if not name.startswith("_") and not inspect.ismodule(vars(laxity)[name])}
    assert public - {"TYPE_CHECKING", "Any", "import_module"} <= set(laxity.__all__)


def test_the_stubs_say_what_the_extension_module_has():
    _run("mypy.stubtest", "laxity._native", "--concise", "--mypy-config-file", "pyproject.toml")


def test_bodies_are_checked_against_jobs_and_may_be_classes():
    program = """
        import laxity

        def good(job: laxity.Job) -> None:
            job.output("detect").resize(3)

        def bad(job: str) -> None: ...

        class Detect:
            def __call__(self, job: laxity.Job) -> None: ...

        class Uncalled:
            def call(self, job: laxity.Job) -> None: ...

        workload = laxity.load("car.toml")
        laxity.run(workload, {"a": good, "b": Detect, "c": Detect(), "d": lambda job: job.index})
        laxity.run(workload, {"a": 3})  # type: ignore[dict-item]
        laxity.run(workload, {"a": bad})  # type: ignore[dict-item]
        laxity.run(workload, {"a": Uncalled})  # type: ignore[dict-item]
    """
    # An error that is not there is one, too.
    _run("mypy", "--strict", "--ignore-missing-imports", "--config-file", "", "-c", textwrap.dedent(program))


def test_what_is_published_is_the_library_and_the_report_without_studies(tmp_path):
    """Of the source distribution, which needs no compiler: a wheel has the same Python files."""
    _run("maturin", "sdist", "--out", str(tmp_path))
    with tarfile.open(next(tmp_path.iterdir())) as archive:
        names = [Path(*Path(name).parts[1:]) for name in archive.getnames()]
    published = {path.parts[1] for path in names if path.parts[0] == "laxity" and len(path.parts) > 2}
    assert published == {"gpu", "live", "plots", "report", "sched", "vx"}
    assert {Path("laxity/py.typed"), Path("laxity/report/page.html"), Path("laxity/report/page.css")} <= set(names)
    assert not [name for name in names if "studies" in name.parts]


def test_mypy_finds_nothing():
    _run("mypy")


def test_ruff_finds_nothing():
    _run("ruff", "check", ".")
    _run("ruff", "format", "--check", ".")
