"""Builds a release of the checked-out commit into .release; with --tag it also sets its tag. `make release` runs it.

python infra/local/release.py [--tag]

The same commit and build tools give the same bytes: archives are sorted, every file in them carries the time of the
commit, and none its owner. Functions and layers are taken from .aws-sam, which `make build` keeps up to date.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
STACKS: Final = {"stack": "build", "service": "service/build", "batch": "batch/build"}
"""Part of a release -> what `sam build` made of it, below .aws-sam."""
LISTS: Final = {"sbom.json": "sbom.json", "third-party-notices.txt": "THIRD-PARTY-NOTICES.txt"}
"""Part of a release -> what `make sbom` made of it, below .aws-sam."""
CONTAINERFILE: Final = "infra/agent/Containerfile"
_COPIED: Final = re.compile(r"^COPY (?!--)(.+) \S+$", re.MULTILINE)
_LIBRARY: Final = str(sysconfig.get_config_var("EXT_SUFFIX"))
"""How compiled modules of this machine end."""
_LAMBDAS: Final = ".cpython-313-aarch64-linux-gnu.so"
_BUILD: Final = """
import os, sys
from setuptools.build_meta import build_sdist, build_wheel
_, time, made = sys.argv  # setuptools writes over it
os.umask(0o022)
os.environ["SOURCE_DATE_EPOCH"] = time
build_sdist(made)
build_wheel(made)
"""


def git(root: Path, *words: str) -> bytes:
    """Return the output of a git command."""
    return subprocess.run(  # noqa: S603 - our own words
        ["git", *words],  # noqa: S607 - the developer's git
        cwd=root,
        check=True,
        capture_output=True,
    ).stdout


def version_of(root: Path) -> str:
    """Return the version that pyproject.toml states."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


def why_not(root: Path, version: str) -> Iterator[str]:
    """Yield why this version cannot be tagged here now."""
    if changed := git(root, "status", "--porcelain").decode():
        yield f"files are changed or untracked:\n{changed.rstrip()}"
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}$"
    if not re.search(heading, changelog, re.MULTILINE):
        yield f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`"
    if git(root, "tag", "--list", f"v{version}"):
        yield f"the tag v{version} exists"


def pack(archive: Path, files: Mapping[str, Path], time: int) -> None:
    """Write files, each under its name in the archive, into a .tar.gz.

    Args:
        archive: where.
        files: name in the archive -> file.
        time: what every file is said to be of, in seconds since the epoch.
    """
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=time, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, file in sorted(files.items()):
            content = file.read_bytes()
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), time
            member.mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
            tar.addfile(member, io.BytesIO(content))


def below(folder: Path, under: str) -> Mapping[str, Path]:
    """Return all files of a folder by their names in an archive, which has them in a folder of its own."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {f"{under}/{file.relative_to(folder)}": file for file in files}


def for_lambda(files: Mapping[str, Path]) -> Mapping[str, Path]:
    """Return built files without the compiled modules that only the rigs of this machine load."""
    if _LIBRARY == _LAMBDAS:
        return files
    return {name: file for name, file in files.items() if not name.endswith(_LIBRARY)}


def image_context(checkout: Path, under: str) -> Mapping[str, Path]:
    """Return the files from which the agent's image is built: the Containerfile, and all that it copies."""
    said = (checkout / CONTAINERFILE).read_text(encoding="utf-8")
    found = {f"{under}/{CONTAINERFILE}": checkout / CONTAINERFILE}
    for source in (word for words in _COPIED.findall(said) for word in words.split()):
        there = checkout / source
        found |= (
            below(there, f"{under}/{source}") if there.is_dir() else {f"{under}/{source}": there}
        )
    return found


def build_package(checkout: Path, out: Path, name: str, time: int) -> None:
    """Build sdist and wheel. Setuptools writes owner and present into an sdist, so it is packed anew."""
    made = checkout / "dist"
    subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", _BUILD, str(time), str(made)],
        cwd=checkout,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (wheel,) = made.glob("*.whl")
    shutil.copy(wheel, out)
    with tarfile.open(made / f"{name}.tar.gz") as sdist:
        sdist.extractall(made, filter="data")
    pack(out / f"{name}.tar.gz", below(made / name, name), time)


def build(root: Path, out: Path, version: str) -> None:
    """Build all files of a release into an empty folder."""
    time = int(git(root, "log", "-1", "--format=%ct"))
    name = f"plimsoll-{version}"
    with TemporaryDirectory() as temporary:
        checkout = Path(temporary)
        with tarfile.open(fileobj=io.BytesIO(git(root, "archive", "HEAD"))) as tar:
            tar.extractall(checkout, filter="data")
        image = f"{name}-agent-image"
        pack(out / f"{image}.tar.gz", image_context(checkout, image), time)
        build_package(checkout, out, name, time)
    for part, there in STACKS.items():
        stack = f"{name}-{part}"
        files = for_lambda(below(root / ".aws-sam" / there, stack))
        pack(out / f"{stack}.tar.gz", files, time)
    for part, there in LISTS.items():
        shutil.copy(root / ".aws-sam" / there, out / f"{name}-{part}")


def sums(out: Path) -> str:
    """Return the checksums of all files as `sha256sum -c` reads them."""
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(out.iterdir())
    )


def main(words: list[str]) -> None:
    """Build, print, and set the tag where that is wanted.

    Raises:
        SystemExit: the tag is wanted, and something stands against it.
    """
    tag = words == ["--tag"]
    version = version_of(ROOT)
    against = list(why_not(ROOT, version))
    if tag and against:
        raise SystemExit("\n".join([f"v{version} is not tagged:", *against]))
    out = ROOT / ".release"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    build(ROOT, out, version)
    listed = sums(out)
    (out / "SHA256SUMS").write_text(listed, encoding="utf-8")
    sys.stdout.write(listed)
    commit = git(ROOT, "rev-parse", "HEAD").decode().strip()
    if tag:
        git(ROOT, "tag", "--annotate", f"v{version}", "--message", f"Plimsoll {version}")
        sys.stdout.write(f"v{version} is set on {commit}; nothing was pushed\n")
        return
    sys.stdout.write(f"`make release TAG=yes` would set v{version} on {commit}\n")
    for why in against:
        sys.stdout.write(f"It would refuse: {why}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
