"""What an instance type leaves to pods: the reserves of the EKS images, and what makes several one."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.adapters.nodegroups.branch_interfaces import POD_ENI
from plimsoll.adapters.nodegroups.templates import (
    TAG,
    allocatable_of,
    from_instance_types,
    from_tags,
)

MIB = 2**20


def machine(
    cores: int, mib: int, *, interfaces: int, addresses: int, **more: Any
) -> dict[str, Any]:
    return {
        "VCpuInfo": {"DefaultVCpus": cores},
        "MemoryInfo": {"SizeInMiB": mib},
        "NetworkInfo": {
            "MaximumNetworkInterfaces": interfaces,
            "Ipv4AddressesPerInterface": addresses,
        },
        **more,
    }


@pytest.mark.parametrize(
    ("info", "cpu", "mib", "pods"),
    [
        (machine(1, 512, interfaces=2, addresses=2), 940, 74, 4),
        (machine(2, 8192, interfaces=3, addresses=10), 1930, 6903, 29),
        (machine(16, 65536, interfaces=8, addresses=30), 15890, 59055, 110),
        (machine(36, 73728, interfaces=8, addresses=30), 35840, 65269, 234),
        (machine(96, 196608, interfaces=15, addresses=50), 95690, 178757, 250),
        (machine(1, 300, interfaces=2, addresses=2), 940, 0, 4),
    ],
    ids=["1 core", "m5.large", "m5.4xlarge", "c5.9xlarge", "c5.24xlarge", "too small for any pod"],
)
def test_cpu_memory_and_pods_are_what_kubelet_and_its_host_leave(info, cpu, mib, pods):
    left = allocatable_of(info)
    assert (left.cpu, left.memory, left.pods) == (cpu, mib * MIB, pods)


def test_only_gpus_that_the_device_plugin_of_nvidia_serves_are_counted():
    gpus = [{"Manufacturer": "NVIDIA", "Count": 4}, {"Manufacturer": "AMD", "Count": 2}]
    info = machine(16, 65536, interfaces=8, addresses=30, GpuInfo={"Gpus": gpus})
    assert allocatable_of(info).extended == (("nvidia.com/gpu", 4),)


@pytest.mark.parametrize(
    ("instance_type", "count"),
    [("m5.xlarge", 18), ("c6g.medium", 4), ("i3.metal", 120), ("i3.large", 0), ("t3.large", 0)],
)
def test_branch_interfaces_are_known_of_types_with_a_trunk_interface(
    instance_type: str, count: int
):
    info = machine(4, 16384, interfaces=4, addresses=15, InstanceType=instance_type)
    assert dict(allocatable_of(info).extended).get(POD_ENI, 0) == count


def test_tags_tell_the_branch_interfaces_of_a_type_that_is_not_known():
    newer = machine(4, 16384, interfaces=4, addresses=15, InstanceType="m99.xlarge")
    told = from_tags({f"{TAG}resources/{POD_ENI}": "18"}, from_instance_types([newer], {}))
    assert told is not None
    assert dict(told.allocatable.extended)[POD_ENI] == 18


def test_amounts_in_tags_that_make_no_sense_leave_those_of_the_instance_type():
    large = machine(2, 8192, interfaces=3, addresses=10, InstanceType="m5.large")
    base = from_instance_types([large], {})
    assert from_tags({f"{TAG}resources/cpu": "many"}, base) == base
    assert from_tags({f"{TAG}resources/cpu": "many"}, None) is None
