"""What scripts/supply_chain.py finds in a build's metadata; Python packages are those of the listed hashes."""

import hashlib
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import supply_chain  # noqa: E402 - found once its folder is on the path

REGISTRY = "https://example.org/index"
RULES = {
    "licenses": {"allow": ["MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"]},
    "bans": {"skip": [{"crate": "old@0.1"}]},
    "sources": {"allow-registry": [REGISTRY]},
}


def metadata(*packages):
    """A build from packages (name, version, licence, source)."""
    keys = ("name", "version", "license", "source")
    listed = [dict(zip(keys, package, strict=True)) | {"id": str(index)} for index, package in enumerate(packages)]
    return {"packages": listed, "resolve": {"nodes": [{"id": package["id"]} for package in listed]}}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("GPL-3.0", False),
        ("GPL-3.0/MIT", True),
        ("GPL-3.0 AND MIT", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("Apache-2.0", False),
    ],
)
def test_a_licence_expression_is_met_by_allowed_licences_only(expression, expected):
    assert supply_chain.is_allowed(expression, set(RULES["licenses"]["allow"])) == expected


def test_every_kind_of_problem_is_found():
    source = f"registry+{REGISTRY}"
    found = supply_chain.problems(
        metadata(
            ("fine", "1.0.0", "MIT", source),
            ("nameless", "1.0.0", None, source),
            ("elsewhere", "1.0.0", "MIT", "git+https://example.org/fork"),
            ("twice", "1.0.0", "MIT", source),
            ("twice", "2.0.0", "MIT", source),
            ("own", "0.1.0", None, None),
            ("old", "0.1.9", "MIT", source),
        ),
        RULES,
    )
    assert [problem.partition(":")[0] for problem in found] == ["nameless 1.0.0", "elsewhere 1.0.0", "old", "twice"]


def test_a_second_version_that_deny_toml_excuses_is_none():
    source = f"registry+{REGISTRY}"
    old = [("old", "0.1.9", "MIT", source), ("old", "0.2.0", "MIT", source)]
    assert supply_chain.problems(metadata(*old), RULES) == []
    # 0.1 is not 0.11.
    ahead = supply_chain.problems(metadata(("old", "0.11.0", "MIT", source), ("old", "0.2.0", "MIT", source)), RULES)
    assert len(ahead) == 1


KNOWN = tomllib.loads((ROOT / "scripts" / "advisories.toml").read_text())


def test_an_advisory_holds_for_the_versions_that_it_does_not_call_sound():
    known = {"without": ["fine"], "advisories": {"A-1": {"crate": "bad", "sound": [">=1.2.3,<2.0", ">=2.1", "<1.0.0"]}}}
    affected = ["1.0.0", "1.2.2", "2.0.0", "2.0.5"]
    versions = [*affected, "0.9.9", "1.2.3", "1.9.0", "2.1.0", "3.0.0"]
    found = supply_chain.advised([("bad", version) for version in versions], known)
    assert found == [f"bad {version}: A-1; sound are >=1.2.3,<2.0 or >=2.1 or <1.0.0" for version in affected]
    assert supply_chain.advised([("fine", "1.0.0")], known) == []
    assert "look up its advisories" in supply_chain.advised([("new", "0.1.0")], known)[0]


def test_no_advisory_that_was_read_holds_for_a_crate_that_is_built_in():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    # Crates for other systems than Linux were not looked up.
    looked_up = set(KNOWN["without"]) | {advisory["crate"] for advisory in KNOWN["advisories"].values()}
    ours = [(package["name"], package["version"]) for package in lock if package["name"] in looked_up]
    assert {name for name, _ in ours} == looked_up, "crates that are not built in any more are deleted from the list"
    assert supply_chain.advised(ours, KNOWN) == []
    # What was found on the way: the version before the one that is sound.
    assert supply_chain.advised([("anyhow", "1.0.102")], KNOWN) == [
        "anyhow 1.0.102: RUSTSEC-2026-0190; sound are >=1.0.103"
    ]


REQUIREMENTS = sorted((ROOT / "python").glob("requirements*.txt"))


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.name)
def test_every_python_package_is_pinned_to_a_version_and_to_hashes(path: Path) -> None:
    text = path.read_text().replace("\\\n", " ")
    requirements = [line for line in text.splitlines() if line and not line.startswith(("#", " ", "-"))]
    assert requirements
    for requirement in requirements:
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+ .*--hash=sha256:[0-9a-f]{64}\b", requirement), requirement[:80]


def wheel(folder: Path, content: str) -> Path:
    """A package of one module."""
    path = folder / "laxity_probe-1.0-py3-none-any.whl"
    info = "laxity_probe-1.0.dist-info"
    files = {
        "laxity_probe.py": content,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: laxity-probe\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return path


def test_a_package_whose_bytes_differ_from_the_listed_hash_is_not_installed(tmp_path: Path) -> None:
    digest = hashlib.sha256(wheel(tmp_path, "answer = 1\n").read_bytes()).hexdigest()
    requirements = tmp_path / "requirements.txt"
    environment = os.environ | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}

    def install(*lines: str) -> subprocess.CompletedProcess[str]:
        requirements.write_text("\n".join(lines) + "\n")
        command = [ROOT / "scripts" / "venv.sh", tmp_path / "venv", requirements]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    without = install("laxity-probe==1.0")
    assert without.returncode != 0, "no hash is listed"
    assert "hash" in without.stderr.lower()
    wheel(tmp_path, "answer = 2\n")
    changed = install(f"laxity-probe==1.0 --hash=sha256:{digest}")
    assert changed.returncode != 0, "the wheel is another one"
    assert "do not match" in changed.stderr.lower().replace("\n", " "), changed.stderr
    wheel(tmp_path, "answer = 1\n")
    assert install(f"laxity-probe==1.0 --hash=sha256:{digest}").returncode == 0
