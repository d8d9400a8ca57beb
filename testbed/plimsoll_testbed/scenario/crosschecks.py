"""What no schema can say of a scenario: names that must exist, fields that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from plimsoll.domain import names
from plimsoll_testbed.model.durations import parse_duration, words
from plimsoll_testbed.scenario.problems import FieldPath, Problems, listed, rename, shown
from plimsoll_testbed.scenario.yamlfiles import Document

MAX_HORIZON = timedelta(hours=24)

FAULT_FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "api-server-down": (frozenset(), frozenset({"cluster"})),
    "api-server-slow": (frozenset({"latency"}), frozenset({"cluster"})),
    "insufficient-capacity": (frozenset(), frozenset({"nodes"})),
    "notices-lost": (frozenset(), frozenset({"fraction"})),
    "notices-duplicated": (frozenset(), frozenset({"fraction", "delay"})),
    "notices-delayed": (frozenset({"delay"}), frozenset({"fraction"})),
    "function-killed": (frozenset({"function"}), frozenset()),
    "aws-throttled": (frozenset({"service"}), frozenset({"fraction"})),
}
"""Of each fault the fields that it needs, and those that it may have, besides `at` and `for`."""

SET_BY_RIG = frozenset({names.ZONE, names.HOSTNAME, names.INSTANCE_TYPE, *names.CAPACITY_LABELS})


def check_sense(document: Document, problems: Problems) -> None:
    """Note what makes no sense in a scenario whose shape is sound."""
    _Check(document, problems).run()


class _Check:
    def __init__(self, document: Document, problems: Problems) -> None:
        self.document = document
        self.problems = problems
        self.spec: Mapping[str, Any] = document.value["spec"]
        self.clusters: list[Mapping[str, Any]] = self.spec["clusters"]
        self.horizon = parse_duration(self.spec.get("horizon", "15m"))

    def run(self) -> None:
        """Check everything."""
        if not timedelta(0) < self.horizon <= MAX_HORIZON:
            self.add(
                ("spec", "horizon"),
                found=shown(self.spec["horizon"]),
                allowed=f"more than 0s, at most {words(MAX_HORIZON)}",
                cure="Choose when the drill shall end at the latest",
            )
        self._once(("spec", "clusters"), self.clusters, "cluster")
        for i, cluster in enumerate(self.clusters):
            self._cluster(("spec", "clusters", i), cluster)
        for i, entry in enumerate(self.spec.get("timeline", ())):
            self._entry(("spec", "timeline", i), entry)

    def add(self, path: FieldPath, *, found: str, allowed: str, cure: str) -> None:
        self.problems.add(self.document.place(*path), found=found, allowed=allowed, cure=cure)

    def _once(self, path: FieldPath, things: list[Mapping[str, Any]], what: str) -> None:
        first: dict[str, int] = {}
        for i, thing in enumerate(things):
            name = thing["name"]
            if name in first:
                line = self.document.place(*path, first[name], "name").line
                self.add(
                    (*path, i, "name"),
                    found=f"the {what} {name} again; it first stands on line {line}",
                    allowed="each name once",
                    cure="Rename one of the two",
                )
            first.setdefault(name, i)

    def _cluster(self, path: FieldPath, cluster: Mapping[str, Any]) -> None:
        groups = cluster["nodeGroups"]
        self._once((*path, "nodeGroups"), groups, "node group")
        for i, group in enumerate(groups):
            self._group((*path, "nodeGroups", i), group)
        scan = cluster.get("autoscaler", {}).get("scan", "10s")
        if parse_duration(scan) < timedelta(seconds=1):
            self.add(
                (*path, "autoscaler", "scan"),
                found=shown(scan),
                allowed="at least 1s",
                cure="Write 10s, the usual time",
            )

    def _group(self, path: FieldPath, group: Mapping[str, Any]) -> None:
        size, most = group["size"], group.get("max", group["size"])
        if size > most:
            self.add(
                (*path, "size"),
                found=f"size {size} over max {most}",
                allowed=f"at most {most}",
                cure="Raise max or lower size",
            )
        if group["kind"] == "static" and most > size:
            self.add(
                (*path, "max"),
                found=f"max {most} over size {size} in a static group",
                allowed=f"{size}, since a static group cannot grow",
                cure="Remove max, or write kind: asg",
            )
        least, _, last = group.get("startup", "70s").partition("..")
        if last and parse_duration(last) < parse_duration(least):
            self.add(
                (*path, "startup"),
                found=shown(group["startup"]),
                allowed="a range from the shorter duration to the longer",
                cure=f"Write {last}..{least}",
            )
        for key in group.get("labels", {}):
            if key in SET_BY_RIG:
                self.add(
                    (*path, "labels", key),
                    found=f"the label {key}",
                    allowed="labels that the rig does not set itself",
                    cure="Remove it; capacity, zones and instanceType of the group decide it",
                )

    def _entry(self, path: FieldPath, entry: Mapping[str, Any]) -> None:
        if parse_duration(entry["at"]) > self.horizon:
            self.add(
                (*path, "at"),
                found=shown(entry["at"]),
                allowed=f"at most the horizon, {words(self.horizon)}",
                cure="Raise spec.horizon, or let it happen earlier",
            )
        if "notice" in entry:
            self._notice(path, entry)
        elif "fault" in entry:
            self._fault(path, entry)
        elif "scale" in entry:
            self._one_cluster((*path, "scale"), entry["scale"])
        else:
            self._one_cluster(path, entry)

    def _notice(self, path: FieldPath, entry: Mapping[str, Any]) -> None:
        changes = entry["notice"] == "state-change"
        if changes != ("state" in entry):
            self.add(
                (*path, "state"),
                found=shown(entry["state"]) if "state" in entry else "nothing",
                allowed="a state with the notice state-change, and with no other",
                cure="Name the new state" if changes else "Remove it",
            )
        self._selector((*path, "nodes"), entry["nodes"])

    def _fault(self, path: FieldPath, entry: Mapping[str, Any]) -> None:
        fault = entry["fault"]
        needed, possible = FAULT_FIELDS[fault]
        for name in sorted(needed - entry.keys()):
            self.add(
                (*path, name),
                found="nothing",
                allowed=f"{name}, which {fault} needs",
                cure=f"Add {name}",
            )
        takes = {"at", "fault", "for"} | needed | possible
        for name in entry.keys() - takes:
            self.add(
                (*path, name),
                found=f"{name}, which means nothing for {fault}",
                allowed=listed(sorted(takes)),
                cure="Remove it",
            )
        if parse_duration(entry["for"]) <= timedelta(0):
            self.add(
                (*path, "for"),
                found=shown(entry["for"]),
                allowed="more than 0s",
                cure="Say how long the fault lasts",
            )
        if "nodes" in entry:
            self._selector((*path, "nodes"), entry["nodes"])
        if "cluster" in entry:
            self._known((*path, "cluster"), entry["cluster"], self._cluster_names(), "cluster")

    def _cluster_names(self) -> list[str]:
        return [cluster["name"] for cluster in self.clusters]

    def _one_cluster(self, path: FieldPath, value: Mapping[str, Any]) -> None:
        if "cluster" in value:
            self._known((*path, "cluster"), value["cluster"], self._cluster_names(), "cluster")
        elif len(self.clusters) > 1:
            self.add(
                (*path, "cluster"),
                found="nothing, with several clusters",
                allowed=listed(self._cluster_names()),
                cure="Add cluster",
            )

    def _known(self, path: FieldPath, name: str, known: list[str], what: str) -> bool:
        if name in known:
            return True
        self.add(
            path,
            found=f"the unknown {what} {name}",
            allowed=listed(dict.fromkeys(known)),
            cure=rename(name, known, f"Name a {what} of this scenario"),
        )
        return False

    def _selector(self, path: FieldPath, selector: Mapping[str, Any]) -> None:
        if "count" in selector and "fraction" in selector:
            self.add(
                (*path, "fraction"),
                found="count and fraction together",
                allowed="one of the two",
                cure="Remove one",
            )
        where = selector.get("cluster")
        if where is not None and not self._known(
            (*path, "cluster"), where, self._cluster_names(), "cluster"
        ):
            return
        groups = [
            group
            for cluster in self.clusters
            if where in {None, cluster["name"]}
            for group in cluster["nodeGroups"]
        ]
        known = {
            "group": ("node group", [group["name"] for group in groups]),
            "zone": ("zone", [zone for group in groups for zone in group["zones"]]),
            "instanceType": ("instance type", [group["instanceType"] for group in groups]),
        }
        sound = [
            self._known((*path, name), selector[name], there, what)
            for name, (what, there) in known.items()
            if name in selector
        ]
        if all(sound) and not any(True for _ in _matching(selector, groups)):
            self.add(
                path,
                found=f"{shown(selector)}, which no node group matches",
                allowed="a selection that matches at least one node group",
                cure="Loosen it",
            )


def _matching(
    selector: Mapping[str, Any], groups: list[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    for group in groups:
        if (
            selector.get("group") in {None, group["name"]}
            and selector.get("capacity") in {None, group["capacity"]}
            and selector.get("instanceType") in {None, group["instanceType"]}
            and selector.get("zone") in {None, *group["zones"]}
        ):
            yield group
