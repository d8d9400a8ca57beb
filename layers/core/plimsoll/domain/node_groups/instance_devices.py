"""Which devices the instance types have that a NodePool may choose: known before it has such a node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from plimsoll.domain.kubernetes import GPU, INSTANCE_TYPE, Requirement, satisfied

_NEURON: Final = ("inf", "trn")
_CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    GPU: ("g", "gr", "p"),
    "aws.amazon.com/neuron": _NEURON,
    "aws.amazon.com/neuroncore": _NEURON,
}
"""Device -> the categories of instance types that have it: https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html"""
_OF_AMD: Final = "g4ad"
MOST_GPUS: Final = 16
"""Of one instance type."""
GPU_COUNT: Final = "karpenter.k8s.aws/instance-gpu-count"
_KEY: Final = re.compile(
    r"(?:karpenter\.k8s\.aws|eks\.amazonaws\.com)/instance-(category|family|gpu-count|gpu-manufacturer)"
)
"""Labels of Karpenter, and of EKS Auto Mode: https://karpenter.sh/docs/concepts/scheduling/#well-known-labels"""


def is_instance_device(resource: str) -> bool:
    """Whether nodes of some instance types have a resource, and all others never."""
    return resource.startswith(("nvidia.com/", "aws.amazon.com/neuron"))


def may_have(device: str, amount: int, rules: Sequence[Requirement]) -> bool:
    """Whether an instance type that meets these rules may have so many of a device.

    Args:
        device: the name of a resource.
        amount: how many a pod asks for.
        rules: the requirements of a NodePool.
    """
    categories = _CATEGORIES.get(device, ())
    return any(all(_meets(category, amount, rule) for rule in rules) for category in categories)


def _meets(category: str, amount: int, rule: Requirement) -> bool:
    """Whether a rule leaves types of a category; one about anything else does."""
    found = _KEY.fullmatch(rule.key)
    match "type" if rule.key == INSTANCE_TYPE else found[1] if found else "":
        case "category":
            return satisfied(rule, {rule.key: category})
        case "family" | "type" if rule.operator == "In":
            return any(_category_of(value) == category for value in rule.values)
        case "gpu-count" if category not in _NEURON:
            counts = range(amount, MOST_GPUS + 1)
            return any(satisfied(rule, {rule.key: str(count)}) for count in counts)
        case "gpu-manufacturer" if category not in _NEURON:
            return satisfied(rule, {rule.key: "nvidia"})
        case _:
            return True


def _category_of(name: str) -> str:
    """Return the letters that a family or an instance type begins with."""
    letters = re.match("[a-z]*", name)
    return letters[0] if letters and not name.startswith(_OF_AMD) else ""
