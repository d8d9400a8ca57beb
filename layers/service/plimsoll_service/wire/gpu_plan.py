"""The plan of new GPU layouts that an owner gives to `plimsoll-gpu`: JSON in a ConfigMap.

The owner writes it and the agent only reads it. Whatever is not as it says is refused before a Node
is touched, so an unknown field is refused too: a slip of the pen never lifts a limit.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from plimsoll_service.wire.documents import Malformed
from plimsoll_service.wire.names import LabelKey, ObjectName, Uid

CONFIG_MAP: Final = "plimsoll-gpu-plan"
"""In the namespace `plimsoll`."""
KEY: Final = "plan.json"
MOST_NODES: Final = 1000
MOST_CHARACTERS: Final = 2**20
"""So much a ConfigMap holds."""
MIG_CONFIG: Final = "nvidia.com/mig.config"
"""On a Node, label: which layout NVIDIA's mig-manager shall make."""
PLUGIN_CONFIG: Final = "nvidia.com/device-plugin.config"
"""On a Node, label: which configuration NVIDIA's device plugin shall use, time-slicing for example."""
_NVIDIA: Final = "nvidia.com/"

GRANTED: Final = ("gpu.plimsoll.dev", "configurations", "use")
"""Group, resource and verb by which an owner grants a name. No such resource exists."""

type ConfigLabel = Literal["nvidia.com/mig.config", "nvidia.com/device-plugin.config"]
type LabelValue = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z", max_length=63)
]
type Number = Annotated[int, Meta(ge=0, le=10_000)]


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Part of a plan."""


class ConfigSource(_Part, frozen=True, kw_only=True):
    """The ConfigMap that gives the layouts their names, as it was when the plan was made."""

    namespace: ObjectName
    name: ObjectName
    key: Annotated[str, Meta(pattern=r"^[-._a-zA-Z0-9]+\Z", max_length=253)]
    """Of mig-manager, such as config.yaml; of the device plugin, the name of the configuration itself."""
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    """Of the text under that key, in UTF-8."""


class NodeChange(_Part, frozen=True, kw_only=True):
    """The new layout of one Node."""

    name: ObjectName
    uid: Uid
    label: ConfigLabel = "nvidia.com/mig.config"
    value: LabelValue
    allocatable: Annotated[dict[LabelKey, Number], Meta(min_length=1, max_length=32)]
    """Every resource of nvidia.com that the Node shall have afterwards, and how much of it; those that are
    left out are expected to be 0."""


class GpuPlan(_Part, frozen=True, kw_only=True):
    """Which Nodes shall have which layout."""

    config: ConfigSource
    nodes: Annotated[tuple[NodeChange, ...], Meta(max_length=MOST_NODES)]
    """In this order."""
    nodes_per_hour: Annotated[int, Meta(ge=1, le=MOST_NODES)] = 1
    """How many are begun within any sixty minutes."""
    paused: bool = False
    """No Node is begun while it is true; those that were begun are brought to an end."""


def parse_plan(text: str) -> GpuPlan:
    """Read what the ConfigMap holds under its key.

    Raises:
        Malformed: it is too long, no JSON, or a field is unknown, missing or wrong; the message names it.
    """
    if len(text) > MOST_CHARACTERS:
        raise Malformed(f"has {len(text)} characters, more than {MOST_CHARACTERS}")
    try:
        plan = msgspec.json.decode(text, type=GpuPlan)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Malformed(str(error)) from None
    names = [node.name for node in plan.nodes]
    if len(names) != len(set(names)):
        raise Malformed("nodes: a Node stands there twice")
    for node in plan.nodes:
        _check(node)
    return plan


def _check(node: NodeChange) -> None:
    foreign = [name for name in node.allocatable if not name.startswith(_NVIDIA)]
    if foreign:
        raise Malformed(f"Node {node.name}: allocatable: {foreign[0]} is no resource of {_NVIDIA}")
    if not any(node.allocatable.values()):
        raise Malformed(f"Node {node.name}: allocatable: a Node without any GPU is not asked for")
