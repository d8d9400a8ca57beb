"""What a new node of a group will be like.

Best known from a node that the group has. Else by the tags that cluster-autoscaler reads for groups of
no nodes, and by the instance type less what the kubelet and the system keep for themselves:

* memory: 7.5 % (the hypervisor and the kernel), 255 MiB and 11 MiB for each pod that the node may
  hold (the kubelet), and 100 MiB (where eviction begins);
* cpu: 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest;
* ephemeral storage: 10 % of its volume (where eviction begins) and 1 GiB.

The reserve of an EKS AMI is computed by the same formula; other images mostly keep less, so that a
pod that fits here fits there.

Sources: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md,
https://github.com/awslabs/amazon-eks-ami
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final

from plimsoll.adapters.nodegroups.branch_interfaces import POD_ENI, branch_interfaces
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import GPU, Node, Resources, Taint, names, passes
from plimsoll.domain.node_groups import NodeTemplate

TAG: Final = "k8s.io/cluster-autoscaler/node-template/"
_MIB: Final = 2**20

HOST_LABELS: Final = frozenset(
    {
        names.HOSTNAME,
        names.ZONE,
        "failure-domain.beta.kubernetes.io/zone",
        "topology.ebs.csi.aws.com/zone",
        "topology.k8s.aws/zone-id",
        "alpha.eksctl.io/instance-id",
    }
)
"""Labels that say which node it is or where: the next one has others."""

DISK_GIB: Final = 20
"""The volume of a node whose launch template names none, on every EKS image."""


def from_nodes(nodes: Sequence[Node]) -> NodeTemplate | None:
    """Return what the nodes of a group have in common; of what they have, the least."""
    known = [node for node in nodes if node.allocatable.cpu > 0 and node.allocatable.memory > 0]
    if not known:
        return None
    # The newest node's taints stand for the group: a Ready node has lost
    # its start-up taints, and a young one has the present launch template.
    newest = max(known, key=lambda node: (node.ready, node.created, node.name))
    shared = set.intersection(*(set(node.labels.items()) for node in known))
    return NodeTemplate(
        labels={
            key: value
            for key, value in sorted(shared)
            if key not in HOST_LABELS
            and not key.startswith((names.PREFIX, "topology.k8s.aws/network-node-layer"))
        },
        taints=tuple(t for t in newest.taints if not passes(t)),
        allocatable=least([*_reported(known)]),
    )


def from_tags(tags: Mapping[str, str], base: NodeTemplate | None) -> NodeTemplate | None:
    """Return what the tags of a group say, and for all else what `base` does.

    None where neither says how much cpu and memory there will be.
    """
    said = {k.removeprefix(TAG): v for k, v in tags.items() if k.startswith(TAG)}
    labels = _under("label/", said)
    taints = tuple(
        Taint(key=key, value=value.rpartition(":")[0], effect=value.rpartition(":")[2])
        for key, value in _under("taint/", said).items()
    )
    try:
        amounts = Resources.parse(_under("resources/", said))
    except BadInput:
        amounts = Resources()
    if base is None:
        if not amounts.cpu or not amounts.memory:
            return None
        base = NodeTemplate(
            labels={"kubernetes.io/os": "linux"},
            allocatable=Resources(pods=110, extended=_disk(DISK_GIB)),
        )
    return NodeTemplate(
        labels={**base.labels, **labels},
        taints=(*base.taints, *taints),
        allocatable=replace(
            base.allocatable,
            cpu=amounts.cpu or base.allocatable.cpu,
            memory=amounts.memory or base.allocatable.memory,
            pods=amounts.pods or base.allocatable.pods,
            extended=tuple(
                sorted((dict(base.allocatable.extended) | dict(amounts.extended)).items())
            ),
        ),
    )


def from_instance_types(
    infos: Sequence[Mapping[str, Any]],
    labels: Mapping[str, str],
    taints: Sequence[Taint] = (),
    *,
    disk_gib: int = DISK_GIB,
) -> NodeTemplate | None:
    """Return what EC2 says of instance types, less the reserve; of several the least."""
    if not infos:
        return None
    known = [_labels_of(info) for info in infos]
    shared = set.intersection(*(set(one.items()) for one in known))
    return NodeTemplate(
        labels={**dict(sorted(shared)), **labels},
        taints=tuple(taints),
        allocatable=least([allocatable_of(info) for info in infos])
        + Resources(extended=_disk(disk_gib)),
    )


def without_branch_interfaces(template: NodeTemplate) -> NodeTemplate:
    """Return the template of a node in a cluster whose VPC CNI gives pods no security groups of their own."""
    amounts = template.allocatable
    extended = tuple(each for each in amounts.extended if each[0] != POD_ENI)
    return replace(template, allocatable=replace(amounts, extended=extended))


def allocatable_of(info: Mapping[str, Any]) -> Resources:
    """Return what an instance of a type leaves to pods."""
    cores = int(info["VCpuInfo"]["DefaultVCpus"])
    pods = _max_pods(info, cores)
    reserved_cpu = sum(
        1000 * share * max(0, min(cores, last) - first)
        for first, last, share in (
            (0, 1, 0.06),
            (1, 2, 0.01),
            (2, 4, 0.005),
            (4, cores, 0.0025),
        )
    )
    memory = int(info["MemoryInfo"]["SizeInMiB"] * 0.925) - 255 - 11 * pods - 100
    gpus = sum(
        int(gpu.get("Count", 0))
        for gpu in info.get("GpuInfo", {}).get("Gpus", ())
        if str(gpu.get("Manufacturer", "")).upper() == "NVIDIA"
    )
    neurons = [
        (int(one.get("Count", 0)), int(one.get("CoreInfo", {}).get("Count", 0)))
        for one in info.get("NeuronInfo", {}).get("NeuronDevices", ())
    ]
    devices = {
        "aws.amazon.com/neuron": sum(count for count, _ in neurons),
        "aws.amazon.com/neuroncore": sum(count * cores for count, cores in neurons),
        GPU: gpus,
        POD_ENI: branch_interfaces(str(info.get("InstanceType", ""))),
    }
    return Resources(
        cpu=int(1000 * cores - reserved_cpu),
        memory=max(0, memory) * _MIB,
        pods=pods,
        extended=tuple((name, count) for name, count in devices.items() if count),
    )


def _disk(gib: int) -> tuple[tuple[str, int], ...]:
    """Return what a volume leaves to pods: less a tenth, where eviction begins, and the GiB that EKS images reserve."""
    return (("ephemeral-storage", max(0, int(gib * 0.9 * 1024) - 1024) * _MIB),)


def _reported(nodes: Sequence[Node]) -> Iterator[Resources]:
    """Yield the least of the nodes of each instance type, with all devices: plugins report after a node is Ready."""
    of_type: dict[str, list[Resources]] = defaultdict(list)
    for node in nodes:
        of_type[node.labels.get(names.INSTANCE_TYPE, "")].append(node.allocatable)
    for amounts in of_type.values():
        most = reduce(Resources.larger, amounts)
        devices = [(name, amount) for name, amount in most.extended if "/" in name]
        lowest = least(amounts)
        yield replace(
            lowest, extended=tuple(sorted({**dict(lowest.extended), **dict(devices)}.items()))
        )


def _max_pods(info: Mapping[str, Any], cores: int) -> int:
    """Return how many pods find an address: each network interface keeps one of its own.

    https://docs.aws.amazon.com/eks/latest/userguide/choosing-instance-type.html
    """
    network = info.get("NetworkInfo", {})
    interfaces = int(network.get("MaximumNetworkInterfaces", 0))
    addresses = int(network.get("Ipv4AddressesPerInterface", 0))
    most = 110 if cores <= 30 else 250  # noqa: PLR2004 - the limits of the page above
    return min(most, interfaces * (addresses - 1) + 2) if interfaces and addresses else most


def _labels_of(info: Mapping[str, Any]) -> Mapping[str, str]:
    architectures = info.get("ProcessorInfo", {}).get("SupportedArchitectures", ())
    arch = {"x86_64": "amd64", "arm64": "arm64"}
    known = next((arch[a] for a in architectures if a in arch), None)
    return {names.INSTANCE_TYPE: str(info["InstanceType"]), "kubernetes.io/os": "linux"} | (
        {"kubernetes.io/arch": known} if known else {}
    )


def _under(prefix: str, said: Mapping[str, str]) -> dict[str, str]:
    return {k.removeprefix(prefix): v for k, v in sorted(said.items()) if k.startswith(prefix)}


def least(amounts: Sequence[Resources]) -> Resources:
    """Return the least of each resource: any of the instance types may be launched."""
    extended = [dict(a.extended) for a in amounts]
    shared = set.intersection(*(set(e) for e in extended))
    return Resources(
        cpu=min(a.cpu for a in amounts),
        memory=min(a.memory for a in amounts),
        pods=min(a.pods for a in amounts),
        extended=tuple((name, min(e[name] for e in extended)) for name in sorted(shared)),
    )
