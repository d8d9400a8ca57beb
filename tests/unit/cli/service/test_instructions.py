"""`plimsoll instructions`: what was signed is listed, shown, and checked without the service."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from plimsoll_cli.service import instructions as command
from plimsoll_cli.service.login import FILE, Login
from plimsoll_service.services.cluster_rows import remember_cluster
from plimsoll_service.services.clusters import clusters
from plimsoll_service.services.instructions import (
    LOG,
    LOG_FILTERS,
    instruction_rows,
    signed_instruction,
)
from plimsoll_service.services.paging import PageRequest, page_request
from plimsoll_service.wire.access import Enrolled, InstructionKey
from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.instruction_log import SignedRow
from plimsoll_simulation.fake_aws.service_stores import MemoryTenantData
from tests.support.advised import SIGNER, AdvisedCluster, harbor
from tests.support.cli_environment import MemoryEnvironment, StillClock, run

KEY = f"{SIGNER.key_id}:{b64encode(SIGNER.public_key()).decode()}"
FROM_KMS = f"{SIGNER.key_id}:{b64encode(command._DER + SIGNER.public_key()).decode()}"


@dataclass
class Api:
    """The service behind its API, with two instructions; it answers one row a page."""

    cluster: AdvisedCluster

    def call(self, _method: str, path: str, _kind: type[Any], *, query: str = "") -> Any:
        data, now = self.cluster.data, self.cluster.time
        match path.split("/")[2:]:
            case ["clusters"]:
                tenant = MemoryTenantData(StillClock())
                remember_cluster(tenant, "harbor", "harbor", StillClock().now())
                return clusters(tenant, PageRequest(), StillClock().now())
            case ["clusters", "harbor", "instruction-log"]:
                said = dict(each.split("=") for each in query.split("&")) | {"limit": "1"}
                asked = page_request(said, prefix=LOG, filters=LOG_FILTERS)
                return instruction_rows(data, "harbor", asked, now)
            case ["clusters", "harbor", "instruction-log", number]:
                return signed_instruction(data, "harbor", number, now)
            case _:
                raise AssertionError(path)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    cluster = AdvisedCluster()
    cluster.advise(harbor())
    for outcome in ("refused", "done"):
        cluster.accept("consolidate-node a")
        cluster.advise(harbor())
        cluster.report(outcome)
        cluster.advise(harbor())
        cluster.advise(harbor(), minutes=61)
    made = Api(cluster)
    monkeypatch.setattr("plimsoll_cli.service.instructions.logged_in", lambda *_: made)
    return made


def said(*words: str, status: int = 0) -> str:
    result = run(MemoryEnvironment(), "instructions", *words)
    assert result.exit_code == status, result.output
    return result.output


def number_of(api: Api) -> str:
    return str(api.cluster.all()["consolidate-node a"].instruction)


@pytest.fixture
def file(api: Api, tmp_path: Path) -> Path:
    """An instruction in a file, and the service out of reach from now on."""
    found = tmp_path / "instruction.json"
    found.write_text(said("show", number_of(api)))
    return found


def test_all_pages_are_listed_newest_first_with_what_became_of_each(api: Api):
    lines = [line for line in said("list").splitlines() if "consolidate-node a" in line]
    assert ["done" in line for line in lines] == [True, False]
    assert "refused" in lines[1]
    assert number_of(api) in lines[0]


@pytest.mark.parametrize("key", [KEY, FROM_KMS], ids=["32 bytes", "as KMS returns it"])
def test_a_file_is_checked_by_a_key_that_is_given(file: Path, key: str):
    assert "was signed by rig at 2026-" in said("verify", str(file), "--key", key)


def test_a_file_is_checked_by_the_key_that_the_login_pinned(file: Path, tmp_path: Path):
    pinned = InstructionKey(key_id="rig", public_key=SIGNER.public_key())
    enrolled = Enrolled(cluster_id="p-1", kid="k-1", instruction_keys=(pinned,))
    for known, status in ((enrolled, 0), (replace(enrolled, instruction_keys=()), 2)):
        login = Login(service="https://x", private_key=bytes(32), enrolled=known)
        (tmp_path / FILE).write_bytes(encode(login))
        said("verify", str(file), "--config", str(tmp_path), status=status)


def test_what_is_wrong_with_a_file_is_said(file: Path, tmp_path: Path):
    row = msgspec.json.decode(file.read_bytes(), type=SignedRow)
    file.write_bytes(encode(replace(row, target="b")))
    assert "target is b, and a was signed" in said("verify", str(file), "--key", KEY, status=1)
    payload = row.signed.payload.replace(b'"name":"a"', b'"name":"b"')
    file.write_bytes(encode(replace(row, signed=replace(row.signed, payload=payload))))
    text = said("verify", str(file), "--key", KEY, status=1)
    assert "the digest is of other bytes" in text
    assert "the signature is not by the key 'rig'" in text
    other = f"rig:{b64encode(bytes(31) + b'a').decode()}"
    assert said("verify", str(file), "--key", other, status=1)


@pytest.mark.parametrize("content", [b"", b"{}", b"[", b"\xff", b'{"number": 1}'])
def test_a_file_that_is_no_instruction_is_refused(tmp_path: Path, content: bytes):
    file = tmp_path / "x.json"
    file.write_bytes(content)
    assert "is no instruction as `show` prints it" in said(
        "verify", str(file), "--key", KEY, status=2
    )


@pytest.mark.parametrize("key", ["rig", "rig:", "rig:AAAA", "rig:?"])
def test_a_key_that_is_none_is_refused(file: Path, key: str):
    assert "is no ID:KEY" in said("verify", str(file), "--key", key, status=2)
