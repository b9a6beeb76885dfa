"""What scripts/supply_chain.py finds in the metadata of a build."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import supply_chain

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
