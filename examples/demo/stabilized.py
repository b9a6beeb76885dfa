"""What the stabilizer does to a clip that was shaken on purpose, so that the path of the shake is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from examples.demo import children
from examples.vision import quality

FRAMES = 200
SIZE = (640, 360)
SHAKE = 1
"""Seed of its random walk."""


def run(stabilize: Path, clip: Path, out: Path) -> dict[str, Any]:
    """Stabilizes the clip and returns what `run.json` says of it. Raises children.FailedError."""
    folder = out / "stabilized"
    folder.mkdir(parents=True, exist_ok=True)
    frames, shake, sheet, video = (folder / name for name in ("frames.csv", "shake.csv", "sheet.jpg", "stable.avi"))
    children.output(
        *(stabilize, "--size", f"{SIZE[0]}x{SIZE[1]}", "--frames", FRAMES, "--shake", SHAKE),
        *("--csv", frames, "--shake-csv", shake, "--sheet", sheet, "--out", video, clip),
    )
    measured = quality.measure(frames, shake, SIZE)
    print(f"  shake {measured.before:.1f} px before, {measured.after:.2f} px after", flush=True)
    return {
        "sheet": f"{folder.name}/{sheet.name}",
        "says": f"{FRAMES} frames of {clip.name}, shaken by a random walk of shifts and turns. Shake is how fast the "
        "corners of the scene change their motion (acceleration, root mean square).",
        "before_px": measured.before,
        "after_px": measured.after,
        "files": [{"name": "stabilized video", "file": f"{folder.name}/{video.name}"}],
    }
