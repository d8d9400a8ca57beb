"""Reads a scenario file: first its shape by the schema, then what no schema can say.

A path in a scenario is relative to the scenario. Nothing is started here, and manifests are only
named: `script.py` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from plimsoll_testbed.model.durations import Span, parse_duration, parse_span
from plimsoll_testbed.model.nodegroups import NodeGroupSpec
from plimsoll_testbed.scenario.crosschecks import check_sense
from plimsoll_testbed.scenario.problems import Place, Problems
from plimsoll_testbed.scenario.scenario import (
    ApplyEntry,
    Autoscaler,
    Bounds,
    ClusterSpec,
    Entry,
    Expect,
    FaultEntry,
    Latency,
    NoticeEntry,
    PodTimes,
    ScaleEntry,
    Scenario,
    Selector,
)
from plimsoll_testbed.scenario.schemas import check_shape, validator
from plimsoll_testbed.scenario.yamlfiles import Document, read_documents

SCHEMA = "schema.json"


def read_scenario(path: Path) -> Scenario:
    """Return the scenario of a file.

    Raises:
        BadScenario: with everything that is wrong, each with its line, field and cure.
    """
    problems = Problems()
    documents = read_documents(path, problems)
    if len(documents) > 1:
        problems.add(
            documents[1].place(),
            found=f"{len(documents)} documents",
            allowed="one drill in a file",
            cure="Move each drill into a file of its own, and manifests into files named by `manifests`",
        )
    problems.check()
    document = documents[0]
    if check_shape(validator(SCHEMA), document, problems):
        check_sense(document, problems)
    problems.check()
    return _scenario(document, path)


def _scenario(document: Document, path: Path) -> Scenario:
    value = document.value
    spec = value["spec"]
    clusters = tuple(
        _cluster(document.part("spec", "clusters", i), path.parent)
        for i in range(len(spec["clusters"]))
    )
    entries = [
        _entry(document.part("spec", "timeline", i), clusters[0].name, path.parent)
        for i in range(len(spec.get("timeline", ())))
    ]
    return Scenario(
        name=value["metadata"]["name"],
        description=value["metadata"].get("description", ""),
        seed=int(spec.get("seed", 0)),
        horizon=_duration(spec, "horizon", timedelta(minutes=15)),
        latency=_latency(spec.get("latency", {})),
        spot_price=float(spec.get("prices", {}).get("spot", 0.35)),
        clusters=clusters,
        timeline=tuple(sorted(entries, key=lambda entry: entry.at)),
        expect=_expect(spec["expect"]) if "expect" in spec else None,
        file=path,
        document=document,
    )


def _duration(value: Mapping[str, Any], name: str, default: timedelta) -> timedelta:
    return parse_duration(value[name]) if name in value else default


def _latency(value: Mapping[str, Any]) -> Latency:
    return Latency(**{name: parse_duration(text) for name, text in value.items()})


def _cluster(document: Document, folder: Path) -> ClusterSpec:
    value = document.value
    scan = value.get("autoscaler")
    return ClusterSpec(
        name=value["name"],
        node_groups=tuple(_group(group) for group in value["nodeGroups"]),
        manifests=tuple(folder / name for name in value["manifests"]),
        pods=PodTimes(**{k: parse_duration(v) for k, v in value.get("pods", {}).items()}),
        rivals=tuple(value.get("rivals", ())),
        autoscaler=None
        if scan is None
        else Autoscaler(**{k: parse_duration(v) for k, v in scan.items()}),
        place=document.place(),
    )


def _group(value: Mapping[str, Any]) -> NodeGroupSpec:
    default = Span(least=timedelta(seconds=70), most=timedelta(seconds=70))
    allocatable = {"pods": "110", **{k: str(v) for k, v in value["allocatable"].items()}}
    return NodeGroupSpec(
        name=value["name"],
        kind=value["kind"],
        capacity=value["capacity"],
        instance_type=value["instanceType"],
        zones=tuple(value["zones"]),
        size=int(value["size"]),
        max=int(value.get("max", value["size"])),
        startup=parse_span(value["startup"]) if "startup" in value else default,
        allocatable=allocatable,
        labels=dict(value.get("labels", {})),
        taints=tuple({"value": "", **taint} for taint in value.get("taints", ())),
        price=float(value.get("price", 1.0)),
    )


def _selector(value: Mapping[str, Any]) -> Selector:
    names = value.get("names")
    return Selector(
        cluster=value.get("cluster"),
        group=value.get("group"),
        zone=value.get("zone"),
        capacity=value.get("capacity"),
        instance_type=value.get("instanceType"),
        names=None if names is None else tuple(names),
        count=value.get("count"),
        fraction=value.get("fraction"),
    )


def _entry(document: Document, only_cluster: str, folder: Path) -> Entry:
    value: Mapping[str, Any] = document.value
    at, place = parse_duration(value["at"]), document.place()
    if "notice" in value:
        return NoticeEntry(
            at=at,
            notice=value["notice"],
            nodes=_selector(value["nodes"]),
            reclaim=parse_duration(value["reclaim"]) if "reclaim" in value else None,
            state=value.get("state"),
            spread=_duration(value, "spread", timedelta(0)),
            place=place,
        )
    if "fault" in value:
        return _fault(value, at, place)
    if "scale" in value:
        scale = value["scale"]
        return ScaleEntry(
            at=at,
            cluster=scale.get("cluster", only_cluster),
            kind=scale["kind"],
            namespace=scale.get("namespace", "default"),
            name=scale["name"],
            replicas=int(scale["replicas"]),
            place=place,
        )
    return ApplyEntry(
        at=at,
        cluster=value.get("cluster", only_cluster),
        file=folder / value["apply"],
        place=place,
    )


def _fault(value: Mapping[str, Any], at: timedelta, place: Place) -> FaultEntry:
    return FaultEntry(
        at=at,
        fault=value["fault"],
        lasts=parse_duration(value["for"]),
        cluster=value.get("cluster"),
        nodes=_selector(value.get("nodes", {})),
        latency=_duration(value, "latency", timedelta(0)),
        fraction=float(value.get("fraction", 1.0)),
        delay=_duration(value, "delay", timedelta(seconds=1)),
        function=value.get("function"),
        service=value.get("service"),
        place=place,
    )


def _bounds(value: Mapping[str, Any]) -> Bounds:
    return Bounds(
        pods_killed=value.get("podsKilled"),
        pods_cut_short=value.get("podsCutShort"),
        seconds_below_floor=value.get("secondsBelowFloor"),
        seconds_below_replicas=value.get("secondsBelowReplicas"),
        seconds_at_zero=value.get("secondsAtZero"),
        ready_replica_seconds_lost=value.get("readyReplicaSecondsLost"),
        min_ready=value.get("minReady"),
    )


def _expect(value: Mapping[str, Any]) -> Expect:
    return Expect(
        totals=_bounds(value),
        cordoned_within=parse_duration(value["cordonedWithin"])
        if "cordonedWithin" in value
        else None,
        emptied_before_gone=value.get("emptiedBeforeGone", False),
        settled=value.get("settled", False),
        workloads={name: _bounds(bounds) for name, bounds in value.get("workloads", {}).items()},
    )
