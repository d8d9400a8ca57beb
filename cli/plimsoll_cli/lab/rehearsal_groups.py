"""Node groups of a rehearsal without a stack: from `--group`, or from a file.

The size of a new node is that of the group's present nodes; else of other nodes of its instance type; else what the
table of instance types says that is shipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from plimsoll.adapters.nodegroups.eks import LABEL
from plimsoll.adapters.nodegroups.templates import from_nodes, least
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import INSTANCE_TYPE, Node, Resources, Taint
from plimsoll.domain.node_groups import NodeGroup, NodeTemplate
from plimsoll_service.adapters.price_table import price_table
from plimsoll_simulation.declared import Declared, Quantity, Word
from plimsoll_simulation.scenario.problems import Problems
from plimsoll_simulation.scenario.validation import validate
from plimsoll_simulation.scenario.yamlfiles import Document, read_documents

FORM: Final = "NAME=TYPE[,TYPE...],on-demand|spot,max=N[,zone=ZONE...]"
EXAMPLE: Final = "--group base=m6i.large,on-demand,max=6"
_CAPACITIES: Final = ("on-demand", "spot")
_NAMING: Final = (LABEL, "alpha.eksctl.io/nodegroup-name")
"""Labels by which a node names its group."""


class DeclaredTaint(Declared):
    """A taint of the nodes of a group."""

    key: Word
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class DeclaredGroup(Declared):
    """A node group that may grow."""

    name: Word
    instance_types: Annotated[tuple[Word, ...], Field(min_length=1)]
    capacity: Literal["on-demand", "spot"]
    max: Annotated[int, Field(ge=1, le=10_000)]
    """Its maximum size. Present nodes count if their label names the group."""
    zones: tuple[Word, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    taints: tuple[DeclaredTaint, ...] = ()
    allocatable: dict[str, Quantity] | None = None
    """What a new node leaves to pods: for instance types that no table knows."""


class DeclaredGroups(Declared):
    """A file of node groups."""

    groups: Annotated[tuple[DeclaredGroup, ...], Field(min_length=1)]


def groups_of(
    texts: Sequence[str], file: Path | None, nodes: Sequence[Node]
) -> Sequence[NodeGroup]:
    """Return the node groups that options and a file declare, for a cluster with these nodes.

    Raises:
        BadInput: an option or the file is written otherwise, or nothing tells the size of an instance type.
    """
    declared = [_of_option(text) for text in texts]
    if file is not None:
        declared += _of_file(file)
    names = [one.name for one in declared]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"the node group {twice[0]} is given twice: give each group once")
    return [_group(one, nodes) for one in declared]


def _of_option(text: str) -> DeclaredGroup:
    name, equals, rest = text.partition("=")
    words = rest.split(",")
    given = [word.partition("=") for word in words if "=" in word]
    unknown = sorted({key for key, _, _ in given} - {"max", "zone"})
    capacities = [word for word in words if word in _CAPACITIES]
    types = [word for word in words if "=" not in word and word not in _CAPACITIES]
    most = [value for key, _, value in given if key == "max"]
    wrong = not (equals and name) or unknown or len(capacities) != 1 or len(most) != 1
    if wrong or not (types and all("." in each for each in types) and most[0].isdecimal()):
        raise BadInput(f"--group {text}: write {FORM}, as in {EXAMPLE}")
    document = {
        "name": name,
        "instanceTypes": types,
        "capacity": capacities[0],
        "max": int(most[0]),
        "zones": [value for key, _, value in given if key == "zone"],
    }
    return _validated(DeclaredGroup, Document(file=f"--group {text}", value=document, lines={}))


def _of_file(file: Path) -> list[DeclaredGroup]:
    problems = Problems()
    documents = read_documents(file, problems)
    problems.check()
    if len(documents) != 1:
        raise BadInput(f"--groups {file}: give one YAML document with a list `groups`")
    return [*_validated(DeclaredGroups, documents[0]).groups]


def _validated[M: Declared](model: type[M], document: Document) -> M:
    problems = Problems()
    found = validate(model, document, problems)
    problems.check()
    assert found is not None  # noqa: S101 - else there are problems
    return found


def _group(declared: DeclaredGroup, nodes: Sequence[Node]) -> NodeGroup:
    present = [n for n in nodes if any(n.labels.get(label) == declared.name for label in _NAMING)]
    zones = [*declared.zones] or sorted({node.zone for node in present or nodes if node.zone})
    return NodeGroup(
        kind="asg",
        name=declared.name,
        capacity=declared.capacity,
        zones=tuple(zones),
        desired=len(present),
        min_size=0,
        max_size=declared.max,
        instances=frozenset(node.instance for node in present if node.instance),
        instance_types=declared.instance_types,
        template=_template(declared, present, nodes),
    )


def _template(
    declared: DeclaredGroup, present: Sequence[Node], nodes: Sequence[Node]
) -> NodeTemplate:
    known = None if declared.allocatable else from_nodes(present)
    labels = {"kubernetes.io/os": "linux"} if known is None else dict(known.labels)
    taints = [Taint(key=t.key, value=t.value, effect=t.effect) for t in declared.taints]
    if known is None:
        allocatable = least([_amounts(declared, name, nodes) for name in declared.instance_types])
    else:
        allocatable = known.allocatable
        taints += [taint for taint in known.taints if taint not in taints]
    return NodeTemplate(
        labels=labels | declared.labels, taints=tuple(taints), allocatable=allocatable
    )


def _amounts(declared: DeclaredGroup, name: str, nodes: Sequence[Node]) -> Resources:
    """Return what an instance of a type leaves to pods."""
    if declared.allocatable:
        return Resources.parse(declared.allocatable)
    alike = from_nodes([node for node in nodes if node.labels.get(INSTANCE_TYPE) == name])
    if alike is not None:
        return alike.allocatable
    size = price_table().sizes.get(name)
    if size is None:
        raise BadInput(
            f"the node group {declared.name}: nothing tells the size of the instance type {name}. Correct it, or "
            "give the group in a file (--groups) with `allocatable: {cpu: ..., memory: ..., pods: ...}`"
        )
    return size.allocatable
