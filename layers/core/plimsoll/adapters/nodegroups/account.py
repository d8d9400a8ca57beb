"""What node groups are made of, as EC2 knows it: launch templates and instance types, remembered.

They change seldom, and a plan is made every few seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import batched
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import Permanent

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws
    from plimsoll.services.ports import Clock

TEMPLATE_KEPT: Final = timedelta(minutes=5)
"""How long a launch template is believed: `$Latest` may mean another one tomorrow."""
_BATCH: Final = 100
"""Names in one call: DescribeInstanceTypes takes no more."""
EVERY_ARCHITECTURE: Final = ("x86_64", "arm64")


class Account:
    """One account in one region."""

    def __init__(self, aws: Aws, clock: Clock) -> None:
        self.aws = aws
        self._clock = clock
        self._templates: dict[tuple[str, str], tuple[Mapping[str, Any], datetime]] = {}
        self._types: dict[str, Mapping[str, Any] | None] = {}
        self._meeting: dict[str, Sequence[str]] = {}
        self._architectures: dict[str, Sequence[str]] = {}

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return self._clock.now()

    def launch_template(self, reference: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the data of a launch template; nothing when it cannot be read.

        Args:
            reference: `LaunchTemplateId` or `LaunchTemplateName`, and `Version`.
        """
        which = "LaunchTemplateId" if reference.get("LaunchTemplateId") else "LaunchTemplateName"
        key = str(reference.get(which)), str(reference.get("Version") or "$Default")
        known = self._templates.get(key)
        now = self._clock.now()
        if known is None or now - known[1] >= TEMPLATE_KEPT:
            known = self._read_template(which, *key), now
            self._templates[key] = known
        return known[0]

    def instance_type(self, name: str) -> Mapping[str, Any] | None:
        """Return what EC2 says of an instance type, or None when it does not know it."""
        # Kept for the life of the process: an instance type does not change.
        if name not in self._types:
            try:
                with translated(f"describe instance type {name}"):
                    found = self.aws.ec2.describe_instance_types(InstanceTypes=[name])  # type: ignore[list-item] # the stubs list every type
            except Permanent:
                return None
            self._types[name] = dict(found["InstanceTypes"][0]) if found["InstanceTypes"] else None
        return self._types[name]

    def types_that_meet(
        self, requirements: Mapping[str, Any], architectures: Sequence[str]
    ) -> Sequence[str]:
        """Return the instance types of the region that meet requirements by attributes, and describe them.

        Args:
            requirements: the `InstanceRequirements` of a launch template or an override.
            architectures: those of the image, as EC2 names them.

        Raises:
            Permanent: no right, for example.
        """
        key = json.dumps([requirements, architectures], sort_keys=True)
        if key not in self._meeting:
            with translated("resolve the instance requirements of a node group"):
                pages = self.aws.ec2.get_paginator(
                    "get_instance_types_from_instance_requirements"
                ).paginate(
                    ArchitectureTypes=architectures,  # type: ignore[arg-type] # the stubs list every one
                    VirtualizationTypes=["hvm"],
                    InstanceRequirements=requirements,  # type: ignore[arg-type] # as AWS gave it
                )
                found = [each["InstanceType"] for page in pages for each in page["InstanceTypes"]]
                for batch in batched(found, _BATCH, strict=False):
                    told = self.aws.ec2.describe_instance_types(InstanceTypes=list(batch))  # type: ignore[arg-type] # the stubs list every type
                    self._types |= {
                        each["InstanceType"]: dict(each) for each in told["InstanceTypes"]
                    }
            self._meeting[key] = found
        return self._meeting[key]

    def architectures(self, image: str | None) -> Sequence[str]:
        """Return the architecture of an image, as EC2 names it; every one where that cannot be read."""
        if image is None or not image.startswith("ami-"):
            return EVERY_ARCHITECTURE
        if image not in self._architectures:
            try:
                with translated(f"describe image {image}"):
                    found = self.aws.ec2.describe_images(ImageIds=[image])["Images"]
            except Permanent:
                return EVERY_ARCHITECTURE
            told = [each["Architecture"] for each in found if each.get("Architecture")]
            self._architectures[image] = told or EVERY_ARCHITECTURE
        return self._architectures[image]

    def auto_scaling_groups(self, names: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Return Auto Scaling groups by name, read now; the unknown ones are left out."""
        found: dict[str, Mapping[str, Any]] = {}
        for batch in batched(names, _BATCH, strict=False):
            with translated(f"describe Auto Scaling groups {', '.join(batch)}"):
                pages = self.aws.autoscaling.get_paginator("describe_auto_scaling_groups").paginate(
                    AutoScalingGroupNames=list(batch)
                )
                found |= {
                    group["AutoScalingGroupName"]: group
                    for page in pages
                    for group in page["AutoScalingGroups"]
                }
        return found

    def lifecycle_hooks(self, group: str) -> Sequence[Mapping[str, Any]]:
        """Return the lifecycle hooks of an Auto Scaling group."""
        with translated(f"describe the lifecycle hooks of {group}"):
            found = self.aws.autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=group)
        return list(map(dict, found["LifecycleHooks"]))

    def activities(self, group: str) -> Sequence[Mapping[str, Any]]:
        """Return the latest hundred scaling activities of an Auto Scaling group, the newest first.

        https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeScalingActivities.html
        """
        with translated(f"describe the scaling activities of {group}"):
            found = self.aws.autoscaling.describe_scaling_activities(AutoScalingGroupName=group)
        return list(map(dict, found["Activities"]))

    def _read_template(self, which: str, name: str, version: str) -> Mapping[str, Any]:
        # EC2 takes the id or the name, not both.
        arguments: dict[str, Any] = {which: name, "Versions": [version]}
        try:
            with translated(f"describe launch template {name}"):
                found = self.aws.ec2.describe_launch_template_versions(**arguments)
        except Permanent:
            return {}
        versions = found["LaunchTemplateVersions"]
        return dict(versions[0].get("LaunchTemplateData", {})) if versions else {}
