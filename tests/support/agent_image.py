"""The files of the agent's image, put together from the project's wheel as the Containerfile says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "infra" / "agent" / "Containerfile").read_text(encoding="utf-8")
TREES = ("layers", "agent", "cli", "simulation", "testbed")
BUILD = "from setuptools.build_meta import build_wheel; print(build_wheel('dist'))"


def installed() -> list[str]:
    """The libraries of the image."""
    wanted = re.search(r"\^\(([a-z0-9|-]+)\)==", CONTAINERFILE)
    assert wanted is not None
    return wanted[1].split("|")


def copied() -> list[tuple[str, str]]:
    """What the image has of the project: source in the checkout, and target below `/agent`."""
    lines = re.findall(r"^COPY (?!--from)(.+) /agent/(\S+)$", CONTAINERFILE, re.MULTILINE)
    return [(source, target) for sources, target in lines for source in sources.split()]


def wheel(folder: Path) -> Path:
    """Build the project's wheel, in a copy of the checkout, and return it."""
    checkout = folder / "checkout"
    checkout.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for tree in TREES:
        shutil.copytree(ROOT / tree, checkout / tree, ignore=ignored)
    done = subprocess.run(
        [sys.executable, "-c", BUILD], cwd=checkout, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return checkout / "dist" / done.stdout.split()[-1]


def image(folder: Path) -> Path:
    """Return the image's folder `/agent`: its libraries, and of the wheel what is copied."""
    unpacked, made = folder / "unpacked", folder / "agent"
    made.mkdir()
    with ZipFile(wheel(folder)) as archive:
        archive.extractall(unpacked)
    for source, target in copied():
        there = unpacked / re.sub(r"^(layers/\w+|\w+)/", "", source)
        into = made / target if target.endswith("/") else (made / target).parent
        into.mkdir(parents=True, exist_ok=True)
        if there.is_dir():
            shutil.copytree(there, made / target)
        else:
            shutil.copy(there, into)
    for name in installed():
        library = distribution(name)
        for part in {file.parts[0] for file in library.files or () if ".." not in file.parts}:
            link = made / part
            if not link.exists():
                link.symlink_to(Path(str(library.locate_file(part))))
    return made
