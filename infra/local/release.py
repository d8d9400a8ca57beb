"""Builds a release of the checked-out commit into .release; with --tag it also sets its tag. `make release` runs it.

python infra/local/release.py [--key FILE] [--tag]

The same commit and build tools give the same bytes: archives are sorted, every file in them carries the time of the
commit, and none its owner. All is built in a copy of the commit, so nothing of the working tree gets in.

The key, a PEM file, signs SHA256SUMS with Ed25519 (RFC 8032): SHA256SUMS.sig has the 64 bytes of the signature alone,
which openssl verifies.
"""

from __future__ import annotations

import argparse
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

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

ROOT: Final = Path(__file__).resolve().parents[2]
STACKS: Final = {"stack": "build", "service": "service/build", "batch": "batch/build"}
"""Part of a release -> what `sam build` made of it, below .aws-sam."""
LISTS: Final = {"sbom.json": "sbom.json", "third-party-notices.txt": "THIRD-PARTY-NOTICES.txt"}
"""Part of a release -> what `make sbom` made of it, below .aws-sam."""
CONTAINERFILE: Final = "infra/agent/Containerfile"
PUBLIC_KEY: Final = "infra/release.pub"
"""Whom users trust: the key of releases, in PEM."""
BORROWED: Final = (".venv", ".tools")
"""What a build takes from the working tree: the locked environments."""
READY: Final = (".venv/.ready", ".tools/sam/.ready", ".tools/supply/.ready")
"""They stand, whatever time the files of the copy have."""
OPERATE: Final = (
    "infra/grafana/*.json",
    "infra/terraform/*.tf",
    "infra/*.yaml",
    "infra/fis/*.yaml",
)
"""What people use beside a stack: boards, the Terraform module, templates that need no build."""
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


def why_not(root: Path, version: str, *, signed: bool) -> Iterator[str]:
    """Yield why this version cannot be tagged here now."""
    if not signed:
        yield "its checksums are not signed: give KEY=FILE"
    if changed := git(root, "status", "--porcelain").decode():
        yield f"files are changed or untracked:\n{changed.rstrip()}"
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}$"
    if not re.search(heading, changelog, re.MULTILINE):
        yield f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`"
    if git(root, "tag", "--list", f"v{version}"):
        yield f"the tag v{version} exists"


def key_of(root: Path, file: Path) -> Ed25519PrivateKey:
    """Return the key that signs, if it belongs to the public key of the commit.

    Raises:
        SystemExit: it is another key, or none.
    """
    try:
        key = load_pem_private_key(file.read_bytes(), password=None)
    except (OSError, TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise SystemExit(f"{file} is no private key without a passphrase: {error}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SystemExit(f"{file} is no Ed25519 key: openssl genpkey -algorithm ed25519")
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    if (
        not git(root, "ls-tree", "HEAD", PUBLIC_KEY)
        or git(root, "show", f"HEAD:{PUBLIC_KEY}") != public
    ):
        raise SystemExit(f"{PUBLIC_KEY} is not of {file}: commit this there\n{public.decode()}")
    return key


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


def for_operators(checkout: Path, under: str) -> Mapping[str, Path]:
    """Return what people use beside a stack."""
    files = (file for pattern in OPERATE for file in checkout.glob(pattern))
    return {f"{under}/{file.relative_to(checkout)}": file for file in files}


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


def build_stacks(root: Path, checkout: Path) -> None:
    """Build functions, layers and lists in a copy of the commit, with the environments of the working tree."""
    for name in BORROWED:
        (checkout / name).symlink_to(root / name)
    kept = [word for file in READY for word in ("--old-file", file)]
    subprocess.run(  # noqa: S603 - our own words
        ["make", *kept, "build", "sbom"],  # noqa: S607 - the developer's make
        cwd=checkout,
        check=True,
        stdout=sys.stderr,
    )


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
        operate = f"{name}-operate"
        pack(out / f"{operate}.tar.gz", for_operators(checkout, operate), time)
        build_package(checkout, out, name, time)
        build_stacks(root, checkout)
        for part, there in STACKS.items():
            stack = f"{name}-{part}"
            files = for_lambda(below(checkout / ".aws-sam" / there, stack))
            pack(out / f"{stack}.tar.gz", files, time)
        for part, there in LISTS.items():
            shutil.copy(checkout / ".aws-sam" / there, out / f"{name}-{part}")


def sums(out: Path) -> str:
    """Return the checksums of all files as `sha256sum -c` reads them."""
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(out.iterdir())
    )


def main(words: list[str]) -> None:
    """Build, sign, print, and set the tag where that is wanted.

    Raises:
        SystemExit: the tag is wanted, and something stands against it; or the key is not the release's.
    """
    parser = argparse.ArgumentParser(description="Build a release of the checked-out commit.")
    parser.add_argument("--key", type=Path, help="PEM file of the Ed25519 key that signs")
    parser.add_argument("--tag", action="store_true", help="also set the tag")
    asked = parser.parse_args(words)
    key = key_of(ROOT, asked.key) if asked.key else None
    version = version_of(ROOT)
    against = list(why_not(ROOT, version, signed=key is not None))
    if asked.tag and against:
        raise SystemExit("\n".join([f"v{version} is not tagged:", *against]))
    out = ROOT / ".release"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    build(ROOT, out, version)
    listed = sums(out)
    (out / "SHA256SUMS").write_text(listed, encoding="utf-8")
    if key:
        (out / "SHA256SUMS.sig").write_bytes(key.sign(listed.encode()))
    sys.stdout.write(listed)
    commit = git(ROOT, "rev-parse", "HEAD").decode().strip()
    if asked.tag:
        git(ROOT, "tag", "--annotate", f"v{version}", "--message", f"Plimsoll {version}")
        sys.stdout.write(f"v{version} is set on {commit}; nothing was pushed\n")
        return
    sys.stdout.write(f"`make release TAG=yes` would set v{version} on {commit}\n")
    for why in against:
        sys.stdout.write(f"It would refuse: {why}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
