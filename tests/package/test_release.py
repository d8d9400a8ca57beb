"""`make release`: the same bytes for the same commit, signed, no tag where something stands against it, one version everywhere."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = [
    "infra/agent/Containerfile",
    "docs/guides/optimizer.md",
    "docs/reference/cli.md",
]


def _script() -> Any:
    """Return the script as a module; infra holds no package."""
    spec = importlib.util.spec_from_file_location("release", ROOT / "infra/local/release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RELEASE = _script()
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl on PATH")
VERSION = RELEASE.version_of(ROOT)


def a_folder(folder: Path, *names: str, time: int) -> Path:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
        os.utime(file, (time, time))
    return folder


def test_an_archive_depends_on_names_contents_and_the_given_time_alone(tmp_path: Path):
    made = []
    for number, names in enumerate([("b", "a/c"), ("a/c", "b")]):
        folder = a_folder(tmp_path / str(number), *names, time=1000 + number)
        (folder / "b").chmod(0o600 if number else 0o664)
        archive = tmp_path / f"{number}.tar.gz"
        RELEASE.pack(archive, RELEASE.below(folder, "top"), 77)
        made.append(archive.read_bytes())
    assert made[0] == made[1]
    with tarfile.open(tmp_path / "0.tar.gz") as tar:
        assert [(m.name, m.mtime, m.uid, m.uname, m.mode) for m in tar] == [
            ("top/a/c", 77, 0, "", 0o644),
            ("top/b", 77, 0, "", 0o644),
        ]
    RELEASE.pack(tmp_path / "later.tar.gz", RELEASE.below(tmp_path / "0", "top"), 78)
    assert (tmp_path / "later.tar.gz").read_bytes() != made[0]


def test_what_only_this_machine_loads_stays_out_of_the_archives_of_the_stacks(monkeypatch):
    lambdas, ours = "CoreLayer/x" + RELEASE._LAMBDAS, "CoreLayer/x.cpython-313-x86_64-linux-gnu.so"
    files = {name: Path(name) for name in (lambdas, ours, "template.yaml")}
    monkeypatch.setattr(RELEASE, "_LIBRARY", ".cpython-313-x86_64-linux-gnu.so")
    assert set(RELEASE.for_lambda(files)) == {lambdas, "template.yaml"}
    monkeypatch.setattr(RELEASE, "_LIBRARY", RELEASE._LAMBDAS)
    assert set(RELEASE.for_lambda(files)) == set(files)


def test_the_context_of_the_agent_s_image_has_all_that_the_containerfile_copies_and_no_more():
    names = {name.removeprefix("top/") for name in RELEASE.image_context(ROOT, "top")}
    for wanted in (
        "infra/agent/Containerfile",
        "requirements.lock",
        "layers/core/plimsoll/__init__.py",
        "layers/service/plimsoll_service/wire/__init__.py",
        "layers/service/plimsoll_service/py.typed",
        "agent/plimsoll_agent/__main__.py",
    ):
        assert wanted in names
    assert {name.split("/")[0] for name in names} == {
        "infra",
        "requirements.lock",
        "layers",
        "agent",
    }
    assert not any(name.startswith("layers/service/plimsoll_service/adapters") for name in names)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose version 1.0.0 may be tagged."""
    _git(tmp_path, "init", "--quiet")
    for key, value in (("user.name", "t"), ("user.email", "t@example.com")):
        _git(tmp_path, "config", key, value)
    (tmp_path / "CHANGELOG.md").write_text("## [1.0.0] - 2026-01-02\n")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


@pytest.fixture
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key as the page has it made."""
    file = tmp_path_factory.mktemp("key") / "release.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", file], check=True)
    return file


def publish(repository: Path, key: Path) -> Path:
    """Commit the public key; returns its file."""
    file: Path = repository / RELEASE.PUBLIC_KEY
    file.parent.mkdir(exist_ok=True)
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", file], check=True)
    _git(repository, "add", ".")
    _git(repository, "commit", "--quiet", "--message", "key")
    return file


@needs_openssl
def test_openssl_verifies_a_signature_by_the_published_key_and_no_changed_checksums(
    repository: Path, key: Path
):
    public = publish(repository, key)
    listed, signature = repository / "SHA256SUMS", repository / "SHA256SUMS.sig"
    listed.write_text("1234  plimsoll.whl\n")
    signature.write_bytes(RELEASE.key_of(repository, key).sign(listed.read_bytes()))
    verify = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(public), "-rawin", "-in", str(listed), "-sigfile", str(signature)]  # fmt: skip
    page = (ROOT / "docs/operate/upgrades.md").read_text("utf-8")
    assert " ".join(Path(word).name for word in verify) in page
    assert subprocess.run(verify, check=False, capture_output=True).returncode == 0
    listed.write_text("1235  plimsoll.whl\n")
    assert subprocess.run(verify, check=False, capture_output=True).returncode != 0


@needs_openssl
def test_only_the_key_whose_public_half_is_committed_signs(repository: Path, key: Path):
    with pytest.raises(SystemExit, match="BEGIN PUBLIC KEY"):
        RELEASE.key_of(repository, key)
    publish(repository, key)
    assert RELEASE.key_of(repository, key)
    other = key.with_name("other.pem")
    subprocess.run(["openssl", "genpkey", "-algorithm", "x25519", "-out", other], check=True)
    with pytest.raises(SystemExit, match="no Ed25519 key"):
        RELEASE.key_of(repository, other)
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", other], check=True)
    with pytest.raises(SystemExit, match="is not of"):
        RELEASE.key_of(repository, other)


def test_what_people_use_beside_a_stack_has_boards_the_module_and_templates():
    names = {name.removeprefix("top/") for name in RELEASE.for_operators(ROOT, "top")}
    assert {
        "infra/grafana/pipeline.json",
        "infra/terraform/main.tf",
        "infra/spoke.yaml",
        "infra/fis/spot-interruption.yaml",
    } <= names
    assert not any(name.endswith(".py") for name in names)


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True)


def test_a_version_is_tagged_once_with_its_changelog_and_from_a_clean_tree(repository: Path):
    def against(version: str, *, signed: bool = True) -> list[str]:
        return list(RELEASE.why_not(repository, version, signed=signed))

    assert against("1.0.0") == []
    assert ["signed" in why for why in against("1.0.0", signed=False)] == [True]
    assert ["CHANGELOG.md" in why for why in against("1.0.1")] == [True]
    _git(repository, "tag", "v1.0.0")
    assert against("1.0.0") == ["the tag v1.0.0 exists"]
    (repository / "new").touch()
    assert "?? new" in against("1.0.0")[0]


def test_this_version_has_its_section_of_the_changelog_and_stands_in_every_example():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(VERSION)}\] - ", changelog, re.MULTILINE)
    chart = (ROOT / "infra/agent/chart/Chart.yaml").read_text(encoding="utf-8")
    assert re.findall(r"^(?:appV|v)ersion: (.+)$", chart, re.MULTILINE) == [VERSION] * 2
    for page in EXAMPLES:
        named = re.findall(r"plimsoll-agent:([\w.]+)", (ROOT / page).read_text(encoding="utf-8"))
        assert set(named) == {VERSION}, page
