"""The names Plimsoll writes on objects, and the well-known ones it reads: each stands here once."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "plimsoll.dev/"

INTERRUPTION: Final = "plimsoll.dev/interruption"
"""On a Node: the annotation with the record, and the key of the taint."""

ZONAL_SHIFT: Final = "plimsoll.dev/zonal-shift"
"""On a Node: the key of the taint that keeps pods out of a zone where others fit."""

RELEASED: Final = "plimsoll.dev/released"
"""On a pod, annotation: the interruption for which it was released from its ReplicaSet."""

RELEASED_FOR_PLACEMENT: Final = "placement"
"""In the place of an interruption: the pod moves to another spread group, from a node that stays."""

MOVED: Final = "plimsoll.dev/moved"
"""On a pod, annotation: when it, or the pod that it replaces, was last moved for placement, out of which
spread group, and how many moves that makes in succession."""

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
"""On a pod, annotation: Karpenter does not evict it, for good when "true", or up to this age of the pod.
https://karpenter.sh/docs/concepts/disruption/#pod-level-controls"""
PROTECTED: Final = "plimsoll.dev/do-not-disrupt"
"""On a pod, annotation: the value of `karpenter.sh/do-not-disrupt` that Plimsoll set, which is its owner's once it differs."""

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""On a pod, annotation: cluster-autoscaler removes no node with the pod when "false".
https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md"""

STOP_SECONDS: Final = "plimsoll.dev/stop-seconds"
"""On a pod, annotation: how long it needs to stop, as its owner states it."""

POD_TEMPLATE_HASH: Final = "pod-template-hash"
"""On a pod of a Deployment, label: which of its ReplicaSets the pod counts for.
https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#pod-template-hash-label"""
REVISION_HASH: Final = "controller-revision-hash"
"""On a pod of a StatefulSet, label: which revision of its template it was created from.
https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#rolling-updates"""
TRAINING_JOB: Final = "training.kubeflow.org/job-name"
LEADER_WORKER_SET: Final = "leaderworkerset.sigs.k8s.io/name"
GANGS: Final = ("plimsoll.dev/gang", TRAINING_JOB, LEADER_WORKER_SET)
"""On a pod, labels: it is one of a gang, which loses its work with the first of its pods."""
DEADLINE: Final = "plimsoll.dev/deadline"
"""On a pod, annotation of ours: when the first reclaimed node of its gang goes, in UTC."""
CHECKPOINT_TAKES_SECONDS: Final = "plimsoll.dev/checkpoint-takes-seconds"
"""On a Job of a queue, or a pod of another gang, annotation: how long one checkpoint takes. A gang is told a deadline
only if a checkpoint still fits."""
HASHES: Final = (POD_TEMPLATE_HASH, "rollouts-pod-template-hash")
"""Labels by which a ReplicaSet counts its pods: of a Deployment, and of an Argo Rollout."""

IGNORE: Final = "plimsoll.dev/ignore"
"""On a workload or pod, label or annotation: leave it alone when "true" (also "yes", "on", "y")."""

MIN_ON_DEMAND: Final = "plimsoll.dev/min-on-demand"
"""On a Deployment, StatefulSet or Namespace, annotation: how many replicas, or which share of them,
must stand on on-demand nodes; "auto": an even share where they start more slowly than a spot notice leaves time for."""
AUTO_FLOOR: Final = "auto"

KEEP_READY: Final = "plimsoll.dev/keep-ready"
"""On a Deployment or Namespace, annotation: how many replicas, or which share of them, are to be Ready, and if you like
for what share of the time, as in "60%" or "60%, 99.7%"; "0": none is promised."""

INJECT_FLOORS: Final = "plimsoll.dev/inject-floors"
"""On a Namespace, label: the policy `plimsoll-floors` constrains its new pods when "true"."""
FLOORS: Final = "plimsoll-floors"
"""The admission policy that constrains new pods, its binding, and the ConfigMap in each namespace that
says how."""

EXCLUDED: Final = "node.kubernetes.io/exclude-from-external-load-balancers"
"""On a Node, label: load balancers whose targets are nodes leave it out, whatever its value.
https://kubernetes.io/docs/reference/labels-annotations-taints/#node-kubernetes-io-exclude-from-external-load-balancers"""
EXCLUDED_BY_US: Final = "plimsoll"
"""The value that says that the label is ours. Others write their own names: Karpenter `karpenter`."""

SPREAD_PREFIX: Final = "spread.plimsoll.dev/"
"""On a Node, label: its spread group, as workloads see it that are spread over so many
spot groups, or by `3-1` over three on-demand groups and one of spot."""

GROW: Final = "plimsoll.dev/grow"
"""On a node group, tag: it may be asked for more nodes when "true"."""

GROW_SET_BY: Final = "plimsoll.dev/grow-set-by"
"""On a node group, tag: `SET_BY_ADD` where `plimsoll clusters add` set `plimsoll.dev/grow`. `plimsoll clusters remove`
removes the two together, and leaves a `plimsoll.dev/grow` that somebody else set."""
SET_BY_ADD: Final = "clusters-add"

RENEW: Final = "plimsoll.dev/renew"
"""On an Auto Scaling group, tag: its instances may be terminated once they are empty when "true": one
that was drained on advice, and one that we added."""

HOOK_MARK: Final = "plimsoll.dev/complete"
"""In the notification metadata of a lifecycle hook, and on its Auto Scaling group, tag with "true":
Plimsoll sends the hook's heartbeats and completes it."""

GUARD: Final = "plimsoll.dev/guard"
"""On a workload or Namespace, label: nobody may evict its pods before they are replaced, always when "true", and
while one of its nodes has an open notice when "warned". Also on the PodDisruptionBudgets that see to it."""
GUARD_AT_WARNING: Final = "warned"

OVERRULE_BUDGETS: Final = "plimsoll.dev/overrule-budgets"
"""On a pod, workload or Namespace, label or annotation: with `NEVER_OVERRULED` no pod is deleted past its
PodDisruptionBudget, and ends with its instance instead."""
NEVER_OVERRULED: Final = "never"

RELEASE: Final = "plimsoll.dev/release"
"""On a pod or workload, label or annotation: with `NEVER_RELEASED` no pod is released: something that Plimsoll
does not read selects it by the hash of its template."""
NEVER_RELEASED: Final = "never"

GPU_CHANGE: Final = "plimsoll.dev/gpu-change"
"""On a Node, annotation: the journal of a change of its GPUs. Take it off to have a change that was stopped tried again."""

NAMESPACE: Final = "plimsoll"
KUBE_SYSTEM: Final = "kube-system"
LEASE: Final = "drains"

REVISIONS: Final = ("deployment.kubernetes.io/revision", "rollout.argoproj.io/revision")
"""On a ReplicaSet, annotation: counted by the controller of its Deployment or Rollout."""
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""On a pod, annotation: pods of a lower cost are removed first when their ReplicaSet shrinks."""
MIRROR: Final = "kubernetes.io/config.mirror"
REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
ZONE_LABELS: Final = (ZONE, "topology.ebs.csi.aws.com/zone")
"""Where volumes ask for a zone: the well-known label, and that of the EBS driver."""
HOSTNAME: Final = "kubernetes.io/hostname"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"

MIG_STATE: Final = "nvidia.com/mig.config.state"
"""On a Node, label of NVIDIA's mig-manager: how far the slices are that its configuration asks for."""

NODE_POOL: Final = "karpenter.sh/nodepool"
"""On nodes that Karpenter launched, or EKS Auto Mode: then it launches more for Pending pods."""

CAPACITY_LABELS: Final = (
    "node.kubernetes.io/capacity",
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
)
"""Where a node may say `on-demand` or `spot`; the first that is there wins."""
