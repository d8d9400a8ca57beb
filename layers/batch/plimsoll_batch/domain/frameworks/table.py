"""The kinds that can be queued: an explicit list.

To have `spec.suspend` says nothing: of a CronJob, a ScheduledSparkApplication or a HelmRelease it means that nothing
more is made, and what runs goes on. What each operator does when it is steered from outside was tried or read:
https://github.com/kubernetes-sigs/jobset, https://github.com/ray-project/kuberay,
https://github.com/kubeflow/trainer, https://github.com/kubeflow/training-operator,
https://github.com/kubeflow/mpi-operator, https://github.com/kubeflow/spark-operator
"""

from __future__ import annotations

from typing import Final

from plimsoll_batch.domain.frameworks.paths import EACH, Path
from plimsoll_batch.domain.frameworks.rows import (
    Count,
    Ended,
    Form,
    Framework,
    PodLabel,
    Refusal,
    RoleSource,
    Says,
)

_JOB_TEMPLATE: Final = ("template", "spec", "template", "spec")
_REPLICAS: Final = (Count(path=("replicas",)),)
_OF_JOBSET: Final = PodLabel(label="jobset.sigs.k8s.io/jobset-name", owners=frozenset({"Job"}))
_REPLICATED_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"
_FINISHED: Final = Ended(complete=frozenset({"Succeeded"}), failed=frozenset({"Failed"}))

JOB: Final = Framework(
    name="job",
    kind="Job",
    group="batch",
    version="v1",
    resource="jobs",
    roles=(RoleSource(entries=("spec",)),),
)
"""It has a reader of its own, which counts what a Job has finished; all else is as of the others."""


def _absent(path: Path, why: str) -> Refusal:
    return Refusal(must=Says(path=path, values=(None,)), why=why)


def _off(path: Path, why: str) -> Refusal:
    return Refusal(must=Says(path=path, values=(False,), default=False), why=why)


def _own(controller: str, *above: str) -> Refusal:
    path = ("spec", *above, "managedBy")
    return Refusal(
        must=Says(path=path, values=(controller,), default=controller),
        why=f"{'.'.join(path)}: another controller runs it: leave it out",
    )


JOBSET: Final = Framework(
    name="jobset",
    kind="JobSet",
    group="jobset.x-k8s.io",
    version="v1alpha2",
    resource="jobsets",
    roles=(
        RoleSource(
            entries=("spec", "replicatedJobs"),
            form=Form.LIST,
            name="name",
            template=_JOB_TEMPLATE,
            counts=(
                *_REPLICAS,
                Count(
                    path=("template", "spec", "parallelism"),
                    most=("template", "spec", "completions"),
                ),
            ),
            succeeded=("status", "replicatedJobsStatus", "succeeded"),
        ),
    ),
    ended=Ended(complete=frozenset({"Completed"}), failed=frozenset({"Failed"})),
    pods=(_OF_JOBSET,),
    role_label=_REPLICATED_JOB,
    made_pods=tuple(
        ("status", "replicatedJobsStatus", EACH, field)
        for field in ("active", "ready", "succeeded", "failed")
    ),
    repeats_nothing=Says(path=("spec", "failurePolicy", "maxRestarts"), values=(0,), default=0),
    merges_selectors=True,
    refuses=(
        _own("jobset.sigs.k8s.io/jobset-controller"),
        _absent(
            ("metadata", "annotations", "alpha.jobset.sigs.k8s.io/exclusive-topology"),
            "annotation alpha.jobset.sigs.k8s.io/exclusive-topology: the planner does not place by it: write"
            " plimsoll.dev/topology",
        ),
    ),
    children=frozenset({"Job"}),
)
_GROWS: Final = "it would grow beyond its quota"
_OWN_RAY: Final = _own("ray.io/kuberay-operator")
_HEAD: Final = "headgroup"
_SUBMITTER: Final = "submitter"
_RAY_PODS: Final = frozenset({"RayCluster"})


def _ray_roles(*spec: str) -> tuple[RoleSource, ...]:
    return (
        RoleSource(entries=(*spec, "headGroupSpec"), name=_HEAD),
        RoleSource(
            entries=(*spec, "workerGroupSpecs"),
            form=Form.LIST,
            name="groupName",
            counts=(Count(path=("replicas",), default=0), Count(path=("numOfHosts",))),
        ),
    )


def _no_autoscaler(*spec: str) -> Refusal:
    path = (*spec, "enableInTreeAutoscaling")
    return _off(path, f"{'.'.join(path)}: {_GROWS}: leave it out")


RAY_JOB: Final = Framework(
    name="ray",
    kind="RayJob",
    group="ray.io",
    version="v1",
    resource="rayjobs",
    roles=(
        *_ray_roles("spec", "rayClusterSpec"),
        RoleSource(
            entries=("spec",),
            name=_SUBMITTER,
            template=("submitterPodTemplate", "spec"),
            only=Says(
                path=("spec", "submissionMode"), values=("K8sJobMode",), default="K8sJobMode"
            ),
            default={"cpu": "500m", "memory": "200Mi"},
        ),
    ),
    ended=Ended(
        path=("status", "jobDeploymentStatus"),
        complete=frozenset({"Complete"}),
        failed=frozenset({"Failed", "ValidationFailed"}),
    ),
    pods=(
        # The status loses the name when it is suspended, while all pods are still there.
        PodLabel(
            label="ray.io/cluster",
            owners=_RAY_PODS,
            value=("status", "rayClusterName"),
            generated=True,
        ),
        PodLabel(label="batch.kubernetes.io/job-name", owners=frozenset({"Job"})),
    ),
    role_label="ray.io/group",
    unlabelled=_SUBMITTER,
    # The name of its RayCluster stands there before any pod. The address is that of a head, and a retry has neither for a while.
    made_pods=(("status", "dashboardURL"), ("status", "failed")),
    limit=("spec", "activeDeadlineSeconds"),
    refuses=(
        Refusal(
            must=Says(path=("spec", "shutdownAfterJobFinishes"), values=(True,), default=False),
            why="spec.shutdownAfterJobFinishes: must be true: without it KubeRay ends a suspended RayJob for good",
        ),
        _absent(
            ("spec", "clusterSelector"),
            "spec.clusterSelector: the pods of another RayCluster are not its own: leave it out",
        ),
        Refusal(
            must=Says(
                path=("spec", "submissionMode"),
                values=("K8sJobMode", "HTTPMode"),
                default="K8sJobMode",
            ),
            why="spec.submissionMode: must be K8sJobMode or HTTPMode: of others nobody knows the pods",
        ),
        _no_autoscaler("spec", "rayClusterSpec"),
        _OWN_RAY,
    ),
    children=frozenset({"RayCluster", "Job"}),
)
RAY_CLUSTER: Final = Framework(
    name="ray",
    kind="RayCluster",
    group="ray.io",
    version="v1",
    resource="rayclusters",
    roles=_ray_roles("spec"),
    pods=(PodLabel(label="ray.io/cluster", owners=_RAY_PODS),),
    role_label="ray.io/group",
    made_pods=(("status", "head", "podIP"),),
    refuses=(_no_autoscaler("spec"), _OWN_RAY),
)
RAY_SERVICE: Final = "RayService"
"""It has no row: it serves. Its RayClusters are its own all the same."""


def _kubeflow(kind: str, resource: str, specs: str, *refuses: Refusal) -> Framework:
    return Framework(
        name="kubeflow",
        kind=kind,
        group="kubeflow.org",
        version="v1",
        resource=resource,
        suspend=("spec", "runPolicy", "suspend"),
        roles=(
            RoleSource(
                entries=("spec", specs),
                form=Form.MAP,
                counts=_REPLICAS,
                succeeded=("status", "replicaStatuses", "succeeded"),
            ),
        ),
        ended=_FINISHED,
        pods=(PodLabel(label="training.kubeflow.org/job-name", owners=frozenset({kind})),),
        role_label="training.kubeflow.org/replica-type",
        made_pods=_REPLICA_STATUSES,
        limit=("spec", "runPolicy", "activeDeadlineSeconds"),
        refuses=(_own("kubeflow.org/training-operator", "runPolicy"), *refuses),
    )


_REPLICA_STATUSES: Final = tuple(
    ("status", "replicaStatuses", EACH, field) for field in ("active", "succeeded", "failed")
)
KUBEFLOW: Final = (
    _kubeflow(
        "PyTorchJob",
        "pytorchjobs",
        "pytorchReplicaSpecs",
        # With metrics, its operator makes a HorizontalPodAutoscaler of it.
        _absent(
            ("spec", "elasticPolicy", "metrics"),
            f"spec.elasticPolicy.metrics: {_GROWS}: leave it out",
        ),
    ),
    _kubeflow("TFJob", "tfjobs", "tfReplicaSpecs"),
    _kubeflow("XGBoostJob", "xgboostjobs", "xgbReplicaSpecs"),
    _kubeflow("PaddleJob", "paddlejobs", "paddleReplicaSpecs"),
    _kubeflow("JAXJob", "jaxjobs", "jaxReplicaSpecs"),
)
MPI_JOB: Final = Framework(
    name="mpi",
    kind="MPIJob",
    group="kubeflow.org",
    version="v2beta1",
    resource="mpijobs",
    suspend=("spec", "runPolicy", "suspend"),
    roles=(RoleSource(entries=("spec", "mpiReplicaSpecs"), form=Form.MAP, counts=_REPLICAS),),
    ended=_FINISHED,
    pods=(PodLabel(label="training.kubeflow.org/job-name", owners=frozenset({"MPIJob", "Job"})),),
    role_label="training.kubeflow.org/job-role",
    made_pods=_REPLICA_STATUSES,
    limit=("spec", "runPolicy", "activeDeadlineSeconds"),
    refuses=(_own("kubeflow.org/mpi-operator", "runPolicy"),),
    children=frozenset({"Job"}),
)


def _later_trainer(field: str, version: str) -> Refusal:
    return _absent(
        ("spec", field),
        f"spec.{field}: is of trainer {version}: a TrainJob of 2.0 alone can be steered",
    )


TRAIN_JOB: Final = Framework(
    name="trainer",
    kind="TrainJob",
    group="trainer.kubeflow.org",
    version="v1alpha1",
    resource="trainjobs",
    shape_of="JobSet",
    ended=Ended(complete=frozenset({"Complete"}), failed=frozenset({"Failed"})),
    pods=(_OF_JOBSET,),
    role_label=_REPLICATED_JOB,
    made_pods=tuple(
        ("status", "jobsStatus", EACH, field)
        for field in ("active", "ready", "succeeded", "failed")
    ),
    overrides=("spec", "podSpecOverrides"),
    merges_selectors=True,
    refuses=(
        _later_trainer("podTemplateOverrides", "2.1"),
        _later_trainer("runtimePatches", "2.2 and later"),
        _own("trainer.kubeflow.org/trainjob-controller"),
    ),
    children=frozenset({"JobSet", "Job"}),
)
_AMOUNTS_OF_CONF: Final = (
    "spark.driver.cores",
    "spark.driver.memory",
    "spark.driver.memoryOverhead",
    "spark.driver.memoryOverheadFactor",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.executor.memory",
    "spark.executor.memoryOverhead",
    "spark.executor.memoryOverheadFactor",
    "spark.executor.pyspark.memory",
    "spark.kubernetes.driver.limit.cores",
    "spark.kubernetes.driver.podTemplateFile",
    "spark.kubernetes.driver.request.cores",
    "spark.kubernetes.executor.limit.cores",
    "spark.kubernetes.executor.podTemplateFile",
    "spark.kubernetes.executor.request.cores",
    "spark.kubernetes.memoryOverheadFactor",
    "spark.memory.offHeap.enabled",
)
"""Keys of `sparkConf` that change what a pod requests beside what the object states."""
SPARK: Final = Framework(
    name="spark",
    kind="SparkApplication",
    group="sparkoperator.k8s.io",
    version="v1beta2",
    resource="sparkapplications",
    roles=(
        RoleSource(entries=("spec", "driver"), name="driver", template=(), amounts=True),
        RoleSource(
            entries=("spec", "executor"),
            name="executor",
            template=(),
            amounts=True,
            counts=(Count(path=("instances",)),),
        ),
    ),
    ended=Ended(
        path=("status", "applicationState", "state"),
        complete=frozenset({"COMPLETED"}),
        failed=frozenset({"FAILED"}),
    ),
    pods=(
        PodLabel(
            label="sparkoperator.k8s.io/app-name", owners=frozenset({"SparkApplication", "Pod"})
        ),
    ),
    role_label="spark-role",
    made_pods=(("status", "driverInfo", "podName"),),
    refuses=(
        _off(
            ("spec", "dynamicAllocation", "enabled"),
            f"spec.dynamicAllocation: {_GROWS}: set executor.instances",
        ),
        Refusal(
            must=Says(path=("spec", "mode"), values=("cluster",), default="cluster"),
            why="spec.mode: must be cluster: elsewhere the driver is no pod of its own",
        ),
        _absent(
            ("spec", "nodeSelector"), "spec.nodeSelector: write it in spec.driver and spec.executor"
        ),
        *(
            _absent(
                ("spec", role, "template"),
                f"spec.{role}.template: may request more than is stated: write spec.{role}.cores and memory",
            )
            for role in ("driver", "executor")
        ),
        *(
            _absent(
                ("spec", "sparkConf", key),
                f"spec.sparkConf: {key}: write it in spec.driver and spec.executor",
            )
            for key in _AMOUNTS_OF_CONF
        ),
        _absent(
            ("spec", "sparkConf", "spark.dynamicAllocation.enabled"),
            f"spec.sparkConf: spark.dynamicAllocation.enabled: {_GROWS}: set executor.instances",
        ),
    ),
)
FRAMEWORKS: Final = (
    JOBSET,
    RAY_JOB,
    RAY_CLUSTER,
    TRAIN_JOB,
    *KUBEFLOW,
    MPI_JOB,
    SPARK,
)
"""Every row but that of Jobs."""
NAMES: Final = tuple(dict.fromkeys(row.name for row in FRAMEWORKS))


def rows_of(names: tuple[str, ...]) -> tuple[Framework, ...]:
    """Return the rows of some frameworks, in the order of the table."""
    return tuple(row for row in FRAMEWORKS if row.name in names)


def is_child(kind: str, owner: str) -> bool:
    """Whether an object of one kind, whose controller is of another, belongs to what a queue may hold as a whole."""
    serves = kind == RAY_CLUSTER.kind and owner == RAY_SERVICE
    return serves or any(row.kind == owner and kind in row.children for row in FRAMEWORKS)
