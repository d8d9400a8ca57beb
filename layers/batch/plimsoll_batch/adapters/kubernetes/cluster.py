"""One cluster over plain JSON: what the planner of the queues reads of it, and every write to it.

All writes are patches of one object under its uid and resourceVersion; those of Jobs stand in `job_patch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

import msgspec

from plimsoll.adapters.kubernetes import lease
from plimsoll.adapters.kubernetes.api import create_event, written_taints
from plimsoll.adapters.kubernetes.calls import (
    LIST_NAMESPACES,
    LIST_NODES,
    LIST_PODS,
    PATCH_NODE,
    PATCH_POD,
)
from plimsoll.adapters.kubernetes.collection import Collection
from plimsoll.adapters.kubernetes.objects import parse_node, parse_pod
from plimsoll.adapters.kubernetes.reading import UNFINISHED
from plimsoll.adapters.kubernetes.requests import Json, Requests
from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.adapters.kubernetes.watches import Watches, list_unwatched
from plimsoll.domain.errors import Conflict, MissingRights, NotFound
from plimsoll.domain.kubernetes import ClusterEvent, Node, Pod
from plimsoll.services.ports import Clock, Workers
from plimsoll_batch.adapters.kubernetes import calls, job_patch
from plimsoll_batch.adapters.kubernetes.framework_objects import FrameworkObjects
from plimsoll_batch.adapters.kubernetes.job_reader import (
    FAILED,
    job_reader,
    parse_bare_pod,
    parse_failed_pod,
)
from plimsoll_batch.adapters.kubernetes.namespace_grants import read_grants
from plimsoll_batch.adapters.kubernetes.pod_admission import PodAdmission
from plimsoll_batch.adapters.kubernetes.pod_groups import change_of, pod_group_of
from plimsoll_batch.adapters.kubernetes.stored_queues import configuration_in, stored_text
from plimsoll_batch.domain import names
from plimsoll_batch.domain.capacity import taint_of
from plimsoll_batch.domain.frameworks import FRAMEWORKS, JOB
from plimsoll_batch.domain.jobs import (
    Admission,
    Gang,
    GangPodGroup,
    Job,
    NodeRequest,
    Stop,
)
from plimsoll_batch.domain.quota import Grants, QueueConfiguration
from plimsoll_batch.services.ports import ClusterObjects

_API_VERSIONS: Final = {row.kind: row.api_version for row in (JOB, *FRAMEWORKS)}


class KubernetesQueues:
    """Implements `plimsoll_batch.services.ports.QueueCluster`.

    Args:
        requests: Makes the calls.
        clock: The time.
        workers: Reads lists side by side.
        warn: Told of every object that cannot be read and is left out.
        follow: Reads after the first come from watches, until `close`.
    """

    def __init__(
        self,
        requests: Requests,
        clock: Clock,
        *,
        workers: Workers,
        warn: Callable[[str], None] = lambda _: None,
        follow: bool = False,
    ) -> None:
        self._requests = requests
        self._clock = clock
        self._workers = workers
        self._warn = warn
        self._watches = Watches(requests, workers, clock, warn) if follow else None
        self._anew = partial(type(self), requests, clock, workers=workers, warn=warn)
        self._nodes = Collection(LIST_NODES, parse_node)
        self._pods = Collection(LIST_PODS, parse_pod, fields=UNFINISHED)
        self._jobs = Collection(calls.LIST_JOBS, self._job, labels=names.QUEUE)
        self._bare = Collection(LIST_PODS, parse_bare_pod, labels=names.QUEUE)
        self._failed = Collection(LIST_PODS, parse_failed_pod, fields=FAILED, labels=names.GANG)
        self._namespaces = Collection(LIST_NAMESPACES, read_grants)
        self._grants_unread: str | None = None
        """Why they cannot be listed."""
        self._configuration: tuple[str, QueueConfiguration] | None = None
        """The text that was read last, and what it says."""
        self._frameworks = FrameworkObjects(warn)
        self._read_job = job_reader(PodAdmission())
        self._admission_known = False

    @classmethod
    def of(
        cls, transport: Transport, name: str, clock: Clock, workers: Workers, **more: Any
    ) -> KubernetesQueues:
        """Return the cluster behind a transport, by its name for messages."""
        requests = Requests(transport=transport, cluster=name, grant=calls.GRANT)
        return cls(requests, clock, workers=workers, **more)

    @property
    def requests(self) -> Requests:
        """What makes other calls to the cluster."""
        return self._requests

    def configuration(self) -> QueueConfiguration | None:
        """Return the configuration of the queues; None where there is none.

        Raises:
            BadInput: it is wrong; every problem is named with its place.
        """
        text = stored_text(self._requests)
        if text is None:
            return None
        if self._configuration is None or self._configuration[0] != text:
            self._configuration = text, configuration_in(text)
        return self._configuration[1]

    def assume(self, configuration: QueueConfiguration) -> None:
        """Read from now on what this configuration asks for, and not that of the cluster."""
        self._configuration = "", configuration

    def read(self) -> ClusterObjects:
        """Read jobs, pods and nodes."""
        kinds = self._kinds
        if not self._admission_known:  # what follows a cluster lives for a minute
            admission = PodAdmission.read(self._requests, self._warn)
            self._read_job = job_reader(admission)
            self._frameworks.admit(admission)
            self._admission_known = True
        if self._watches is not None:
            self._watches.follow(kinds)
        list_unwatched(kinds, self._workers, self._list)
        return ClusterObjects(
            jobs=[
                *(each for each in (*self._jobs.objects, *self._bare.objects) if each is not None),
                *self._frameworks.jobs,
            ],
            pods=self._pods.objects,
            nodes=self._nodes.objects,
            failed=self._failed.objects,
            grants=Grants(by_namespace=dict(self._namespaces.objects), unread=self._grants_unread),
        )

    def _list(self, kind: Collection[Any]) -> None:
        """List a kind; without the right to list Namespaces the queues that need no grant go on."""
        if self._frameworks.list(kind, self._requests):
            return
        try:
            kind.list(self._requests, self._warn)
        except MissingRights as error:
            if kind is not self._namespaces:
                raise
            self._grants_unread = str(error)

    def leases(self) -> bool:
        """Whether any node is marked as leased to a gang."""
        pages = self._requests.pages(LIST_NODES, labels=names.LEASED_TO)
        return any(page.items for page in pages)

    @contextmanager
    def following(self) -> Iterator[KubernetesQueues]:
        """Give the same cluster, which after the first read is followed by watches."""
        followed = self._anew(follow=True)
        try:
            yield followed
        finally:
            followed.close()

    def close(self) -> None:
        """End all watches."""
        for kind in (*self._kinds, self._namespaces):  # no queue may need grants by now
            kind.close()

    @property
    def _kinds(self) -> list[Collection[Any]]:
        found: list[Collection[Any]]
        found = [self._jobs, self._bare, self._failed, self._pods, self._nodes]
        if self._configuration is None:
            return found
        said = self._configuration[1]
        found += self._frameworks.kinds(said.frameworks)
        if self._grants_unread is None and any(queue.labelled for queue in said.queues):
            found.append(self._namespaces)
        return found

    def acquire(self, holder: str, seconds: float) -> bool:
        """Take or renew the Lease of the queues; False while somebody else's is live."""
        return lease.acquire(self._requests, holder, seconds, self._clock.now(), names.LEASE)

    def release_lease(self, holder: str) -> None:
        """Give it back, if it is ours."""
        lease.release(self._requests, holder, names.LEASE)

    def job(self, job: Job) -> Job:
        """Read a Job or bare pod again.

        Raises:
            NotFound: it is gone, or another has its name.
        """
        call = calls.GET_POD if job.bare else calls.call_of(job.framework, "get")
        # A GET by name may return another Job of that name: the UID tells them apart.
        answer = self._requests.send(call, namespace=job.ref.namespace, name=job.ref.name)
        found = self._parsed(job, answer)
        if found.uid != job.uid:
            raise NotFound(f"{job}: another has its name by now")
        return found

    def write_plan(self, job: Job, admission: Admission) -> Job:
        """Write a plan on a Job under its uid and resourceVersion, and return what it became."""
        return self._patch(job, job_patch.planned(job, admission))

    def start(self, job: Job, admission: Admission) -> None:
        """Start a Job and steer its pods in one patch, under its uid and resourceVersion."""
        self._patch(job, job_patch.started(job, admission))

    def write_request(self, job: Job, request: NodeRequest) -> Job:
        """Write on a Job what is asked for its gang, under its uid and resourceVersion; return what it became."""
        return self._patch(job, job_patch.requested(job, request))

    def suspend(self, job: Job, stop: Stop) -> None:
        """Suspend a Job and write why in one patch, under its uid and resourceVersion."""
        self._patch(job, job_patch.suspended(job, stop))

    def write_pod_group(self, group: GangPodGroup) -> None:
        """Make a PodGroup as a gang needs it, or change the count and the owners of one that this gang has.

        Nothing happens where the cluster serves no PodGroups, and that of somebody else is left alone.

        Raises:
            Refused: that of somebody else needs more pods at once than the gang gives it.
            Conflict: it is being deleted, or was changed meanwhile.
        """
        send = partial(self._requests.send, namespace=group.ref.namespace, name=group.ref.name)
        with suppress(Conflict, NotFound):  # most often a gang starts for the first time
            send(calls.CREATE_POD_GROUP, body=pod_group_of(group))
            return
        try:
            there = send(calls.GET_POD_GROUP)
        except NotFound:
            return
        change = change_of(group, there)
        if change is not None:
            send(calls.PATCH_POD_GROUP, body=change)

    def lease(self, node: Node, gang: Gang | None) -> None:
        """Mark a node as leased to a gang, or to none, in one patch under its uid and resourceVersion."""
        taint = None if gang is None else taint_of(gang)
        body = {
            "metadata": {
                "uid": node.uid,
                "resourceVersion": node.resource_version,
                "labels": {names.LEASED_TO: None if gang is None else gang.lease},
            },
            "spec": {"taints": written_taints(node, without={names.LEASED_TO}, add=taint)},
        }
        self._nodes.wrote(self._requests.send(PATCH_NODE, name=node.name, body=body))

    def tell_deadline(self, pod: Pod, deadline: str | None) -> None:
        """Write a deadline on a pod, or take it off, under its uid: nothing else of the pod decides about it."""
        body = {"metadata": {"uid": pod.uid, "annotations": {names.DEADLINE: deadline}}}
        answer = self._requests.send(PATCH_POD, namespace=pod.namespace, name=pod.name, body=body)
        self._pods.wrote(answer)

    def restart(self, job: Job, admission: Admission) -> None:
        """Suspend a Job and write how it is started again, in one patch, under its uid and resourceVersion."""
        self._patch(job, job_patch.restarted(job, admission))

    def end(self, job: Job, *, complete: bool) -> None:
        """Let a Job end as Complete, or as Failed, by one patch under its uid and resourceVersion."""
        self._patch(job, job_patch.ended(job, complete=complete))

    def create_event(self, event: ClusterEvent) -> None:
        """Create an Event of Kubernetes; `Conflict` where it was created before."""
        create_event(self._requests, event, self._clock.now(), _API_VERSIONS)

    def _patch(self, job: Job, patch: Sequence[job_patch.Operation]) -> Job:
        answer = self._requests.send(
            PATCH_POD if job.bare else calls.call_of(job.framework, "patch"),
            namespace=job.ref.namespace,
            name=job.ref.name,
            body=patch,
            strict=job.framework.overrides is not None,
        )
        if job.bare:
            self._bare.wrote(answer)
        elif job.framework is JOB:
            self._jobs.wrote(answer)
        else:
            self._frameworks.wrote(job, answer)
        return self._parsed(job, answer)

    def _parsed(self, job: Job, answer: Json) -> Job:
        """Return what an answer says of a Job, an object of a framework or a bare pod.

        Raises:
            NotFound: it has a controller by now, and is queued no more.
        """
        if job.framework is not JOB:
            return self._frameworks.parsed(job, answer)
        found = parse_bare_pod(answer) if job.bare else self._job(answer)
        if found is None:
            raise NotFound(f"{job}: it has a controller by now")
        return found

    def _job(self, obj: Json | msgspec.Raw) -> Job | None:
        return self._read_job(obj)
