"""Puts the agent together: of the package the only module that names all its parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Thread

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.errors import BadInput
from plimsoll.services.ports import Clock
from plimsoll_agent.agent_state import agent_state
from plimsoll_agent.calls import KEY
from plimsoll_agent.cluster_reader import ClusterReader
from plimsoll_agent.config import Config
from plimsoll_agent.gpu_metrics import CONNECTIONS, GpuMetrics
from plimsoll_agent.identity import Identity, SecretIdentity
from plimsoll_agent.instruction_executor import InstructionExecutor
from plimsoll_agent.journal import ConfigMapJournal
from plimsoll_agent.loops import Loops
from plimsoll_agent.metrics_server import serve
from plimsoll_agent.output import Output
from plimsoll_agent.owner_policy import OwnerPolicy, read_policy
from plimsoll_agent.pinning_service import PinningService
from plimsoll_agent.queue_changes import QueueChanges
from plimsoll_agent.service import Service
from plimsoll_agent.snapshot_sender import SnapshotSender
from plimsoll_agent.spool import Spool
from plimsoll_agent.taint_forwarder import TaintForwarder
from plimsoll_service.wire.access import Enrolled, tells_of

NAME = "cluster"
"""What messages call the cluster: an agent knows one."""
THREADS = 4
"""Kinds that are listed side by side: few, because the pages of all of them are in memory at once."""


class TokenFile:
    """The token of the ServiceAccount; the kubelet replaces it before it ends.

    https://kubernetes.io/docs/concepts/storage/projected-volumes/#serviceaccounttoken
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def get(self) -> str:
        """Return the token as it is now."""
        return self._file.read_text(encoding="ascii").strip()

    def forget(self) -> None:
        """Do nothing: it is read each time."""


def enrolled(store: SecretIdentity, url: str, clock: Clock) -> Identity:
    """Return the identity of this cluster's agent, enrolling its key where that was not done.

    Raises:
        BadInput: there is neither an enrolled key nor a join token; or instructions are to be signed by
            no key, or by another than the token tells of. The token stays, and enrols the same key again.
        PlimsollError: the service or the cluster cannot be reached, or refuses.
    """
    identity = store.load()
    if identity.enrolled is not None:
        return identity
    if identity.join_token is None:
        raise BadInput(
            f"Secret {KEY} holds no join-token, and no key is enrolled yet: put a fresh one there"
        )
    answer = Service(url, identity, clock).enrol(identity.join_token, store.cluster_uid())
    keys = answer.instruction_keys
    if not keys or not all(tells_of(identity.join_token, key.public_key) for key in keys):
        names = "a key for instructions that the join token does not tell of" if keys else "no key"
        raise BadInput(
            f"the service names {names}: join by a fresh token of `plimsoll tenants invite`. If this "
            "stays so, somebody has changed the service"
        )
    store.enrolled(answer)
    return replace(identity, enrolled=answer)


def put_together(transport: Transport, config: Config, clock: Clock, output: Output) -> Loops:
    """Return the agent of a cluster, ready to run.

    Raises:
        PlimsollError: see `enrolled`.
    """
    requests, workers = Requests(transport=transport, cluster=NAME), ThreadWorkers(THREADS)
    store, journal = SecretIdentity(requests), ConfigMapJournal(requests, clock)
    if store.load().enrolled is None:
        journal.establish()
    identity = enrolled(store, config.service, clock)
    known = identity.enrolled or Enrolled(cluster_id="", kid="")
    service = Service(config.service, identity, clock)
    instructing = PinningService(service, store, known)

    def policy() -> OwnerPolicy:
        found = read_policy(requests)
        return (
            found if found.instruction_keys else replace(found, instruction_keys=instructing.keys)
        )

    gpus = config.gpu_metrics and GpuMetrics(
        source=config.gpu_metrics,
        clock=clock,
        workers=ThreadWorkers(CONNECTIONS),
        measures=output,
        warn=output.once,
    )
    reader = ClusterReader(requests, workers, clock, output.once, gpus or None)
    sender = SnapshotSender(
        cluster_id=known.cluster_id,
        follow=reader.follow,
        read=reader.read,
        about=lambda: agent_state(policy),
        push=service.push,
        spool=Spool(config.spool, config.spool_bytes),
        clock=clock,
        measures=output,
        warn=output.warn,
    )
    executor = InstructionExecutor(
        cluster_id=known.cluster_id,
        api=KubernetesCluster(transport, NAME, clock, workers=workers, warn=output.once),
        service=instructing,
        policy=policy,
        journal=journal,
        clock=clock,
        progress=output,
    )

    def failed(what: str, error: Exception) -> None:
        output.failed(what)
        output.warn(f"{what}: tried again later", because=str(error))

    return Loops(
        sender=sender,
        taints=TaintForwarder(requests, clock, service.forward, output.once),
        queues=QueueChanges(requests, clock, service.queue_changed, output.once),
        executor=executor,
        clock=clock,
        failed=failed,
    )


def run(loops: Loops, output: Output, port: int) -> None:
    """Run all loops until `Loops.stop` is called."""
    server = serve(output.registry, port, loops.healthy)
    for loop, name in (
        (loops.execute_instructions, "instructions"),
        (loops.forward_taints, "taints"),
        (loops.report_queue_changes, "queues"),
    ):
        Thread(target=loop, name=name, daemon=True).start()
    try:
        loops.send_snapshots()
    finally:
        loops.stop()
        server.shutdown()
        server.server_close()
