"""Checks what Laxity is built from against deny.toml: with cargo-deny where it is installed, else with what is here.

Without cargo-deny: licences, crates in several versions, sources, and the advisories of scripts/advisories.toml.
"""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression, or cargo's old form with `/`, can be met by licences that are allowed."""
    words = re.findall(r"[()]|\bAND\b|\bOR\b|[\w.+-]+(?: WITH [\w.+-]+)?", expression.replace("/", " OR "))
    operators = {"(": "(", ")": ")", "AND": "and", "OR": "or"}
    return bool(eval(" ".join(operators.get(word, str(word in allowed)) for word in words)))  # of True, False, and, or


def built_in(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """The crates of others that are built in."""
    resolved = {node["id"] for node in metadata["resolve"]["nodes"]}
    return [package for package in metadata["packages"] if package["id"] in resolved and package["source"]]


def problems(metadata: dict[str, Any], rules: dict[str, Any]) -> list[str]:
    """What `cargo metadata` says that the rules forbid."""
    licences, registries = set(rules["licenses"]["allow"]), rules["sources"]["allow-registry"]
    found, versions = [], defaultdict(set)
    for package in built_in(metadata):
        name = f"{package['name']} {package['version']}"
        versions[package["name"]].add(package["version"])
        if not is_allowed(package["license"] or "none", licences):
            found.append(f"{name}: licence {package['license']} is not allowed in deny.toml")
        if package["source"].removeprefix("registry+") not in registries:
            found.append(f"{name}: comes from {package['source']}")
    skipped = [rule["crate"].split("@") for rule in rules["bans"]["skip"]]
    for name, several in sorted(versions.items()):
        excused = [start for crate, start in skipped if crate == name]
        left = [version for version in several if not any(f"{version}.".startswith(f"{start}.") for start in excused)]
        if len(left) > 1:
            found.append(f"{name}: several versions, {', '.join(sorted(left))}; agree on one, or say why in deny.toml")
        if len(several) == 1 and excused:
            found.append(f"{name}: there is one version by now; delete it from deny.toml")
    return found


def advised(packages: Iterable[tuple[str, str]], known: dict[str, Any]) -> list[str]:
    """The advisories that hold for packages (name and version), and the packages that were never looked up."""
    by_crate = defaultdict(list)
    for number, advisory in known["advisories"].items():
        by_crate[advisory["crate"]].append((number, advisory["sound"]))
    found = []
    for name, version in packages:
        if name not in by_crate and name not in known["without"]:
            found.append(f"{name} {version}: look up its advisories, and add them to scripts/advisories.toml")
        for number, sound in by_crate[name]:
            if not any(SpecifierSet(versions).contains(version, prereleases=True) for versions in sound):
                found.append(f"{name} {version}: {number}; sound are {' or '.join(sound)}")
    return found


def main() -> int:
    """Prints what is wrong."""
    if shutil.which("cargo-deny"):
        return subprocess.run(["cargo", "deny", "--log-level", "error", "check"], cwd=ROOT, check=False).returncode
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    target = rules["graph"]["targets"][0]
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features", "--filter-platform", target]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    known = tomllib.loads((ROOT / "scripts" / "advisories.toml").read_text())
    packages = [(package["name"], package["version"]) for package in built_in(metadata)]
    found = problems(metadata, rules) + advised(packages, known)
    fine = "licences, versions and sources of crates are as deny.toml says; no advisory that was read {} holds"
    print("\n".join(found) or fine.format(known["read"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
