"""`plimsoll gpu geometry`: a plan of a demand and of what kubectl prints."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from plimsoll_service.wire.gpu_plan import parse_plan
from tests.support.cli_environment import MemoryEnvironment, run

H100 = "H100-80GB-HBM3"


def node(
    name: str,
    *,
    config: str = "all-disabled",
    product: str = "NVIDIA-H100-80GB-HBM3",
    labels: dict[str, str] | None = None,
    allocatable: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    given = allocatable or {"gpu": 8}
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {
                "node.kubernetes.io/instance-type": "p5.48xlarge",
                "nvidia.com/gpu.product": product,
                "nvidia.com/mig.config": config,
                **(labels or {}),
            },
        },
        "status": {
            "allocatable": {
                f"nvidia.com/{resource.replace('_', '.')}": str(number)
                for resource, number in given.items()
            }
        },
    }


def pod(on: str, owner: str | None, **annotations: str) -> dict[str, Any]:
    owners = [] if owner is None else [{"kind": owner, "controller": True}]
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"pod-on-{on}",
            "ownerReferences": owners,
            "annotations": {
                k.replace("__", "/").replace("_", "-"): v for k, v in annotations.items()
            },
        },
        "spec": {
            "nodeName": on,
            "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {"phase": "Running"},
    }


def written(folder: Path, name: str, content: Any) -> str:
    path = folder / name
    path.write_text(json.dumps(content))
    return str(path)


def geometry(folder: Path, demand: Any, items: list[dict[str, Any]], *more: str) -> Any:
    return run(
        MemoryEnvironment(),
        "gpu",
        "geometry",
        "--demand",
        written(folder, "demand.json", demand),
        "--fleet",
        written(folder, "fleet.json", {"kind": "List", "items": items}),
        *more,
    )


def planned(folder: Path, demand: Any, items: list[dict[str, Any]]) -> dict[str, Any]:
    result = geometry(folder, demand, items, "--output", "json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def kept(answer: dict[str, Any]) -> list[str]:
    return [n["name"] for n in answer["plans"][H100]["nodes"] if n["before"] == n["after"]]


DEMAND = {H100: {"1g.10gb": 20, "3g.40gb": 4}}
THREE = [node(name) for name in "abc"]


def test_says_the_gpus_before_and_after_the_bound_and_the_label_of_each_node(tmp_path: Path):
    result = geometry(tmp_path, DEMAND, THREE)
    assert result.exit_code == 0
    assert "8 x gpu" in result.stdout
    assert "not needed" in result.stdout
    assert "7g.80gb." in result.stdout
    answer = planned(tmp_path, DEMAND, THREE)["plans"][H100]
    assert (answer["gpus_before"], answer["bound"], answer["gpus_after"]) == (24, 5, 8)
    assert answer["mechanism"] == "device-plugin"


def test_takes_the_answer_of_fit_as_its_demand(tmp_path: Path):
    answer = planned(tmp_path, {"demand": DEMAND, "classes": []}, THREE)
    assert answer["plans"][H100]["bound"] == 5


def test_without_a_fleet_it_plans_one_to_be_bought(tmp_path: Path):
    file = tmp_path / "demand.yaml"
    file.write_text(f"{H100}: {{7g.80gb: 9}}\n")
    result = run(MemoryEnvironment(), "gpu", "geometry", "--demand", str(file), "-o", "json")
    answer = json.loads(result.stdout)["plans"][H100]
    assert [n["name"] for n in answer["nodes"]] == ["new-1", "new-2"]


@pytest.mark.parametrize(
    ("owner", "annotations", "stays"),
    [
        ("ReplicaSet", {}, False),
        ("StatefulSet", {}, False),
        ("Job", {}, True),
        (None, {}, True),
        ("ReplicaSet", {"karpenter.sh__do_not_disrupt": "true"}, True),
        ("ReplicaSet", {"plimsoll.dev__ignore": "true"}, True),
        ("ReplicaSet", {"plimsoll.dev__ignore": "yes"}, True),
        ("ReplicaSet", {"cluster_autoscaler.kubernetes.io__safe_to_evict": "false"}, True),
    ],
)
def test_a_node_keeps_its_layout_where_a_pod_cannot_be_replaced_or_must_not_be_disrupted(
    owner: str | None, annotations: dict[str, str], *, stays: bool, tmp_path: Path
):
    answer = planned(tmp_path, DEMAND, [*THREE, pod("b", owner, **annotations)])
    assert ("b" in kept(answer)) is stays


def test_a_pod_that_ended_binds_nothing(tmp_path: Path):
    ended = pod("b", "Job") | {"status": {"phase": "Succeeded"}}
    assert kept(planned(tmp_path, DEMAND, [*THREE, ended])) == []


def test_reads_the_geometry_of_each_gpu_from_the_label(tmp_path: Path):
    split = node("a", config="7g.80gb.3g-1gx4", allocatable={"mig-1g_10gb": 32, "mig-3g_40gb": 8})
    answer = planned(tmp_path, DEMAND, [split])
    assert kept(answer) == ["a"]
    assert answer["notes"] == []
    assert answer["plans"][H100]["rebuilt"] == 0


def test_guesses_a_layout_from_the_totals_where_the_label_does_not_say_it(tmp_path: Path):
    split = node("a", config="ours", allocatable={"mig-1g_10gb": 32, "mig-3g_40gb": 8})
    answer = planned(tmp_path, DEMAND, [split])
    assert answer["notes"] == ["a: the geometry of each GPU is guessed from the totals"]
    assert kept(answer) == ["a"]


@pytest.mark.parametrize(
    ("left_out", "why"),
    [
        (node("x", labels={"nvidia.com/gpu.sharing-strategy": "time-slicing"}), "shared by"),
        (node("x", product="NVIDIA-Quadro"), "Quadro is not known"),
        (node("x", config="mine", allocatable={"mig-7g_80gb": 9}), "8 GPUs cannot give"),
        (node("x", product="NVIDIA-L4"), "the demand does not name it"),
        (
            node(
                "x",
                product="NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
                labels={"nvidia.com/mig.strategy": "single"},
                allocatable={"gpu": 56},
            ),
            "strategy is single",
        ),
    ],
)
def test_says_which_nodes_are_left_out_and_why(left_out: dict[str, Any], why: str, tmp_path: Path):
    answer = planned(tmp_path, DEMAND, [left_out])
    assert any(why in note for note in answer["notes"])
    assert [n["before"] for n in answer["plans"][H100]["nodes"]] == [None]


@pytest.mark.parametrize(
    ("demand", "said"),
    [
        ([], "must be a mapping"),
        ({"H900": {"1g.10gb": 1}}, "H900"),
        ({H100: {"1g.10gb": "many"}}, "whole numbers"),
        ({H100: {"1g.10gb+me": 1}}, "place 1g.10gb+me by hand"),
        ({"any": {"classes": [{"pods": 1, "slices": {H100: "1g.10gb"}}]}}, "has no price"),
        ({"any": {"classes": [{"pod": 1}]}}, "must have"),
    ],
)
def test_refuses_a_demand_that_it_cannot_plan_and_says_why(demand: Any, said: str, tmp_path: Path):
    result = geometry(tmp_path, demand, THREE)
    assert result.exit_code == 2
    assert said in result.stderr


def test_refuses_a_fleet_that_is_not_what_kubectl_prints(tmp_path: Path):
    result = run(
        MemoryEnvironment(),
        *("gpu", "geometry", "--demand", written(tmp_path, "d.json", DEMAND)),
        *("--fleet", written(tmp_path, "f.json", {"nodes": []})),
    )
    assert result.exit_code == 2
    assert "kubectl get nodes,pods -A -o json" in result.stderr


def test_a_class_that_runs_on_several_cards_takes_the_cheapest(tmp_path: Path):
    demand = {
        "any": {
            "prices": {H100: 4.2, "L4": 0.8},
            "classes": [{"pods": 14, "slices": {H100: "1g.10gb", "L4": "gpu"}}],
        }
    }
    assert planned(tmp_path, demand, THREE)["plans"][H100]["bound"] == 2


def test_writes_files_for_mig_manager_karpenter_and_bottlerocket(tmp_path: Path):
    folder = tmp_path / "plan"
    assert geometry(tmp_path, DEMAND, THREE, "--files", str(folder)).exit_code == 0
    (listed,) = yaml.safe_load_all((folder / "labels.yaml").read_text())
    (changed,) = listed["items"]
    label = changed["metadata"]["labels"]["nvidia.com/mig.config"]
    (config,) = yaml.safe_load_all((folder / "mig-config.yaml").read_text())
    known = yaml.safe_load(config["data"]["config.yaml"])["mig-configs"]
    assert {label} < set(known) <= {label, "all-disabled"}
    pool, overlay = yaml.safe_load_all((folder / "karpenter.yaml").read_text())
    assert pool["spec"]["template"]["metadata"]["labels"] == {"nvidia.com/mig.config": label}
    assert pool["spec"]["template"]["spec"]["taints"][0]["effect"] == "NoSchedule"
    assert overlay["spec"]["requirements"][0]["values"] == [pool["metadata"]["name"]]
    assert set(overlay["spec"]["capacity"]) >= {"nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"}
    assert "cannot mix profiles" in (folder / "bottlerocket.toml").read_text()


def test_writes_the_plan_that_apply_carries_out_and_the_names_that_it_needs(tmp_path: Path):
    folder = tmp_path / "plan"
    geometry(tmp_path, DEMAND, THREE, "--files", str(folder))
    (config,) = yaml.safe_load_all((folder / "mig-config.yaml").read_text())
    (listed,) = yaml.safe_load_all((folder / "labels.yaml").read_text())
    (labelled,) = listed["items"]
    plan = parse_plan((folder / "plan.json").read_text())
    (changed,) = plan.nodes
    text = config["data"]["config.yaml"].encode()
    assert (plan.config.name, plan.config.sha256) == (
        config["metadata"]["name"],
        sha256(text).hexdigest(),
    )
    assert changed.name == labelled["metadata"]["name"]
    assert changed.uid == f"uid-{changed.name}"
    assert changed.value == labelled["metadata"]["labels"]["nvidia.com/mig.config"]
    _, overlay = yaml.safe_load_all((folder / "karpenter.yaml").read_text())
    slices = {name: str(n) for name, n in changed.allocatable.items() if name != "nvidia.com/gpu"}
    assert slices == overlay["spec"]["capacity"]
    role, binding = yaml.safe_load_all((folder / "grants.yaml").read_text())
    (rule,) = role["rules"]
    names = sorted({"all-disabled", changed.value})  # the way back is granted too
    assert (rule["resources"], rule["resourceNames"]) == (["configurations"], names)
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "plimsoll-gpu", "namespace": "plimsoll"}
    ]


def test_where_no_node_changes_no_name_is_granted(tmp_path: Path):
    folder = tmp_path / "plan"
    geometry(tmp_path, {H100: {"gpu": 24}}, THREE, "--files", str(folder))
    role, _ = yaml.safe_load_all((folder / "grants.yaml").read_text())
    assert (role["rules"], parse_plan((folder / "plan.json").read_text()).nodes) == ([], ())


def test_writes_the_settings_of_bottlerocket_where_all_gpus_have_one_profile(tmp_path: Path):
    folder = tmp_path / "plan"
    geometry(tmp_path, {H100: {"1g.10gb": 56}}, THREE, "--files", str(folder))
    settings = tomllib.loads((folder / "bottlerocket.toml").read_text())["settings"]
    nvidia = settings["kubelet-device-plugins"]["nvidia"]
    assert nvidia["device-partitioning-strategy"] == "mig"
    assert nvidia["mig"]["profile"] == {"h100.80gb": "1g.10gb"}


def test_all_pairs_are_written_on_request(tmp_path: Path):
    folder = tmp_path / "plan"
    geometry(tmp_path, DEMAND, THREE, "--files", str(folder), "--all-pairs")
    (config,) = yaml.safe_load_all((folder / "mig-config.yaml").read_text())
    known = yaml.safe_load(config["data"]["config.yaml"])["mig-configs"]
    assert len(known) == 474 + 1 + 12 * 7  # all-disabled, and pairs with whole GPUs
    assert len(config["data"]["config.yaml"]) < 2**20


def test_draws_each_gpu_before_and_after(tmp_path: Path):
    target = tmp_path / "plan.svg"
    assert geometry(tmp_path, DEMAND, THREE, "--diagram", str(target)).exit_code == 0
    drawn = ET.parse(target).getroot()
    svg = "{http://www.w3.org/2000/svg}"
    assert len(drawn.findall(f"{svg}g")) == 24 + 8
    titles = {title.text for title in drawn.iter(f"{svg}title")}
    assert "gpu" in titles
    assert any("3g" in str(title) for title in titles)
