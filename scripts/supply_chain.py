"""Checks what Laxity is built from against deny.toml: with cargo-deny where it is installed, else with what is here.

Without cargo-deny: licences, crates in several versions, and sources. Not advisories, which take the network.
"""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression, or cargo's old form with `/`, can be met by licences that are allowed."""
    words = re.findall(r"[()]|\bAND\b|\bOR\b|[\w.+-]+(?: WITH [\w.+-]+)?", expression.replace("/", " OR "))
    operators = {"(": "(", ")": ")", "AND": "and", "OR": "or"}
    return bool(eval(" ".join(operators.get(word, str(word in allowed)) for word in words)))  # of True, False, and, or


def problems(metadata: dict[str, Any], rules: dict[str, Any]) -> list[str]:
    """What `cargo metadata` says that the rules forbid."""
    resolved = {node["id"] for node in metadata["resolve"]["nodes"]}
    packages = [package for package in metadata["packages"] if package["id"] in resolved and package["source"]]
    licences, registries = set(rules["licenses"]["allow"]), rules["sources"]["allow-registry"]
    found, versions = [], defaultdict(set)
    for package in packages:
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


def main() -> int:
    """Prints what is wrong."""
    if shutil.which("cargo-deny"):
        return subprocess.run(["cargo", "deny", "--log-level", "error", "check"], cwd=ROOT, check=False).returncode
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    target = rules["graph"]["targets"][0]
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features", "--filter-platform", target]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    found = problems(metadata, rules)
    print("\n".join(found) or "licences, versions and sources of crates are as deny.toml says; no advisories were read")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
