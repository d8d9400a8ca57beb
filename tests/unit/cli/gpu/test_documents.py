"""Where `plimsoll gpu` reads: the pages of the service, or lines of a file."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.domain.errors import BadInput
from plimsoll_cli.gpu.documents import from_file, from_service
from plimsoll_service.services.cluster_rows import remember_cluster
from plimsoll_service.services.clusters import clusters
from plimsoll_service.services.paging import PageRequest
from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.gpu import UNSEEN, WINDOWS_PER_DAY, ClassDay, ClassDays, GpuClass
from plimsoll_simulation.fake_aws.service_stores import MemoryTenantData
from tests.support.cli_environment import StillClock

NOTHING = (UNSEEN,) * WINDOWS_PER_DAY


def a_day(owner: str) -> ClassDay:
    return ClassDay(
        of=GpuClass(namespace="lab", kind="Deployment", owner=owner, model="H200"),
        day=date(2026, 11, 2),
        resource="nvidia.com/gpu",
        joint_memory_mib=NOTHING,
        joint_duty=NOTHING,
    )


@dataclass
class Pages:
    """The service, which answers one document a page."""

    owners: tuple[str, ...]
    asked: list[str] = field(default_factory=list)

    def call(self, _method: str, path: str, _kind: type[Any], *, query: str = "") -> Any:
        if path == "/v1/clusters":
            now, data = StillClock().now(), MemoryTenantData(StillClock())
            remember_cluster(data, "c-1", "harbor", now)
            return clusters(data, PageRequest(), now)
        self.asked.append(f"{path}?{query}")
        at = len(self.asked) - 1
        more = f"a b{at}" if at + 1 < len(self.owners) else ""
        return ClassDays(days=(a_day(self.owners[at]),), left_out=3, next=more)


def owners(found: ClassDays) -> list[str]:
    return [each.of.owner for each in found.days]


def test_all_pages_of_the_service_are_read():
    service: Any = Pages(("a", "b", "c"))
    found = from_service(service, "harbor", 7)
    assert owners(found) == ["a", "b", "c"]
    assert (found.left_out, found.next) == (3, "")
    assert service.asked == [
        "/v1/clusters/c-1/gpu?days=7",
        "/v1/clusters/c-1/gpu?days=7&next=a+b0",
        "/v1/clusters/c-1/gpu?days=7&next=a+b1",
    ]


def test_a_file_has_a_document_a_line(tmp_path: Path):
    file = tmp_path / "days.jsonl"
    file.write_bytes(b"\n".join([encode(a_day("a")), b"", encode(a_day("b"))]) + b"\n")
    assert owners(from_file(file)) == ["a", "b"]


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch):
    body = io.BytesIO(encode(a_day("a")))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=body))
    assert owners(from_file(Path("-"))) == ["a"]


def test_a_line_that_is_no_document_is_named(tmp_path: Path):
    file = tmp_path / "days.jsonl"
    file.write_bytes(encode(a_day("a")) + b'\n{"of": 1}\n')
    with pytest.raises(BadInput, match=r"days\.jsonl, line 2: "):
        from_file(file)
