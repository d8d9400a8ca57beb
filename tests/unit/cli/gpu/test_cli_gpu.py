"""`plimsoll gpu audit` and `plimsoll gpu fit`: what they print, and the files that they write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from plimsoll_service.wire.documents import encode
from plimsoll_service.wire.gpu import COUNTERS, ClassDay
from tests.support.cli_environment import MemoryEnvironment, StillClock, run
from tests.support.gpu_days import between, days_of, never
from tests.unit.service.gpu.test_audit import NOW


def shown(tmp_path: Path, days: Sequence[ClassDay], *args: str) -> str:
    file = tmp_path / "days.jsonl"
    file.write_bytes(b"\n".join(map(encode, days)))
    command, *rest = args
    environment = MemoryEnvironment(clock=StillClock(NOW))
    result = run(environment, "gpu", command, "--from", str(file), *rest)
    assert result.exit_code == 0, result.output
    return result.stdout


def an_office() -> list[ClassDay]:
    return days_of("notebook", busy=between(7, 19, range(5)))


def test_an_audit_shows_what_is_idle_and_when_it_can_be_off(tmp_path):
    text = shown(tmp_path, an_office(), "audit", "--price", "p5.48xlarge=80")
    assert "Deployment lab/notebook  336.0" in text
    assert "$3,360.00" in text
    assert "idle from 19:00 to 07:00 UTC on 7 of the last 7 nights" in text


def test_an_audit_writes_a_schedule_to_commit(tmp_path):
    shown(tmp_path, an_office(), "audit", "--files", str(tmp_path / "out"))
    made = yaml.safe_load((tmp_path / "out" / "lab-notebook-schedule.yaml").read_text())
    assert made["spec"]["scaleTargetRef"]["name"] == "notebook"
    assert [each["metadata"] for each in made["spec"]["triggers"]] == [
        {
            "timezone": "Etc/UTC",
            "start": "0 7 * * 1,2,3,4,5",
            "end": "0 19 * * 1,2,3,4,5",
            "desiredReplicas": "1",
        }
    ]


def test_two_owners_of_long_names_get_schedules_of_two_names_that_keda_takes(tmp_path):
    names = set()
    for owner in ("a" * 45, "a" * 46):
        out = tmp_path / owner
        days = days_of(owner, busy=between(7, 19))
        shown(tmp_path, days, "audit", "--files", str(out))
        (made,) = (yaml.safe_load(file.read_text()) for file in out.iterdir())
        assert made["spec"]["scaleTargetRef"]["name"] == owner
        names.add(made["metadata"]["name"])
    assert len(names) == 2
    assert all(len(f"keda-hpa-{name}") <= 63 for name in names)


def test_an_audit_says_how_to_turn_a_missing_metric_on(tmp_path):
    days = [
        msgspec.structs.replace(day, missing=("DCGM_FI_PROF_SM_ACTIVE",)) for day in an_office()
    ]
    line = f"DCGM_FI_PROF_SM_ACTIVE, {COUNTERS['DCGM_FI_PROF_SM_ACTIVE']}"
    assert line in " ".join(shown(tmp_path, days, "audit").split())


def test_fit_prints_the_patch_that_asks_for_the_slice(tmp_path):
    text = shown(tmp_path, days_of("web"), "fit", "--container", "model")
    assert "1g.10gb (9984 MiB usable)" in text
    patch = yaml.safe_load(text[text.index("# lab-web-t1-h100-80gb-hbm3-gpu.yaml") :])
    wanted = {"nvidia.com/gpu": None, "nvidia.com/mig-1g.10gb": 1}
    assert patch["spec"]["template"]["spec"]["containers"] == [
        {"name": "model", "resources": {"limits": wanted, "requests": wanted}}
    ]


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [("dra", "profile == '1g.10gb'"), ("kai", "gpu-memory: '8000'")],
)
def test_fit_asks_in_the_way_that_is_chosen(tmp_path, mechanism, said):
    assert said in shown(tmp_path, days_of("web"), "fit", "--mechanism", mechanism)


def test_a_claim_has_a_file_of_its_own_and_another_name_for_another_profile(tmp_path):
    """The spec of a ResourceClaimTemplate cannot be changed, and kubectl applies no patch of a pod template."""
    names = set()
    for memory in (8_000, 15_000):
        out = tmp_path / str(memory)
        days = days_of("web", memory=memory)
        shown(tmp_path, days, "fit", "--mechanism", "dra", "--files", str(out))
        (claim,) = map(yaml.safe_load, (file.read_text() for file in out.glob("*-claim.yaml")))
        (patch,) = map(yaml.safe_load, (file.read_text() for file in out.glob("*-gpu.yaml")))
        (asked,) = patch["spec"]["template"]["spec"]["resourceClaims"]
        assert asked["resourceClaimTemplateName"] == claim["metadata"]["name"]
        names.add(claim["metadata"]["name"])
    assert names == {"web-1g.10gb", "web-1g.20gb"}


def test_fit_as_json_has_the_evidence_and_the_demand(tmp_path):
    found: Any = json.loads(shown(tmp_path, days_of("web"), "fit", "--output", "json"))
    assert found["demand"] == {"H100-80GB-HBM3": {"1g.10gb": 1}}
    assert found["cards"][0]["splits"][2] == {
        "learnt": 0.5,
        "over": 0,
        "pods": 1,
        "wholePods": 0,
        "atMost": pytest.approx(0.95),
        "moreCleanPodsNeeded": 298,
    }
    assert found["classes"][0]["mechanism"] == "device-plugin"


def test_a_class_that_is_not_split_has_no_patch(tmp_path):
    days = days_of("web", memory=70_000, busy=never)
    found: Any = json.loads(shown(tmp_path, days, "fit", "-o", "json"))
    assert found["classes"][0]["cause"] == "memory"
    assert found["classes"][0]["patch"] is None


@pytest.mark.parametrize(
    "args", [["audit", "--price", "p5=x"], ["fit", "--from", "-", "--cluster", "harbor"]]
)
def test_an_argument_that_is_wrong_ends_with_2(args):
    assert run(MemoryEnvironment(), "gpu", *args).exit_code == 2
