"""Which instance types a group launches: named, or all that meet requirements by attributes.

Both stand in the overrides of a mixed-instances policy, or else in the launch template.
https://docs.aws.amazon.com/autoscaling/ec2/userguide/create-mixed-instances-group-attribute-based-instance-type-selection.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plimsoll.adapters.nodegroups.kind import Warn
from plimsoll.domain.errors import Permanent

if TYPE_CHECKING:
    from plimsoll.adapters.nodegroups.account import Account


def instance_types_of(
    account: Account,
    group: Mapping[str, Any],
    warn: Warn,
    architectures: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the instance types that an Auto Scaling group launches, as far as they are told.

    Args:
        account: where the group is.
        group: as Auto Scaling describes it.
        warn: called with what could not be read.
        architectures: of its image, where they are known; else EC2 is asked.
    """
    used = launch_template_of(group)
    data = account.launch_template(used) if used else {}
    found: list[str] = []
    for override in overrides_of(group):
        own = override.get("LaunchTemplateSpecification")
        image = account.launch_template(own) if own else data
        found += types_told(account, override, warn, architectures, image=image)
    found = found or [*types_told(account, data, warn, architectures, image=data)]
    found = found or [
        i["InstanceType"] for i in group.get("Instances", ()) if i.get("InstanceType")
    ]
    return tuple(dict.fromkeys(found))


def types_told(
    account: Account,
    told: Mapping[str, Any],
    warn: Warn,
    architectures: Sequence[str],
    *,
    image: Mapping[str, Any],
) -> Sequence[str]:
    """Return the instance types that an override or the data of a launch template tells.

    Args:
        account: where the group is.
        told: the override or the data.
        warn: called with what could not be read.
        architectures: of the image, where they are known.
        image: the data of the launch template that names the image.
    """
    if told.get("InstanceType"):
        return [str(told["InstanceType"])]
    wanted = told.get("InstanceRequirements")
    if not wanted:
        return ()
    try:
        return account.types_that_meet(
            wanted, architectures or account.architectures(image.get("ImageId"))
        )
    except Permanent as error:
        warn(str(error))
        return ()


def launch_template_of(group: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the reference to the launch template of an Auto Scaling group; None where it has none."""
    if group.get("LaunchTemplate"):
        found: Mapping[str, Any] = group["LaunchTemplate"]
        return found
    mixed = group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
    specification: Mapping[str, Any] | None = mixed.get("LaunchTemplateSpecification")
    return specification


def overrides_of(group: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return what a mixed-instances policy has in place of its launch template."""
    mixed = group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
    overrides: Sequence[Mapping[str, Any]] = mixed.get("Overrides", ())
    return overrides
