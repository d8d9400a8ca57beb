"""What carries a plan of GPU layouts out on the fleet: `plimsoll-gpu` by its own rights, and stand-ins of NVIDIA's parts."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from threading import Event, Thread
from typing import Final, Self

import yaml

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH
from plimsoll.domain.errors import PlimsollError, Refused
from plimsoll.domain.kubernetes import GPU, MIG_SLICES, NAMESPACE
from plimsoll_agent.gpu_change import Limits
from plimsoll_agent.gpu_executor import GpuExecutor
from plimsoll_agent.gpu_wiring import DRAIN, put_together
from plimsoll_agent.output import Output
from plimsoll_simulation.checkout import Checkout
from plimsoll_simulation.rigs.mig_manager import MigManager
from plimsoll_testbed.rigs.controlplane import binaries
from plimsoll_testbed.rigs.controlplane.plane import ControlPlane
from plimsoll_testbed.rigs.gpus.play import Fleet
from plimsoll_testbed.rigs.gpus.workloads import NODES, PER_NODE

LIMITS: Final = Limits(
    empties=timedelta(seconds=60),
    begins=timedelta(seconds=10),
    changes=timedelta(seconds=30),
    settles=timedelta(seconds=15),
    steady=timedelta(seconds=2),
)
"""The limits of the agent, of half an hour and of minutes, compressed."""
APPLYING: Final = timedelta(seconds=2)
"""For so long mig-manager splits GPUs."""
_ROUND_SECONDS: Final = 0.3
_OVERLAYS: Final = ("act", "gpu-apply")
_ACCOUNT: Final = "plimsoll-gpu"
_FOREIGN: Final = {"metadata": {"labels": {"team": "red"}}}


def supplies(config: str) -> dict[str, Mapping[str, int]]:
    """Return the GPUs that a node has in each layout of a configuration of mig-parted."""
    found: dict[str, Mapping[str, int]] = {}
    for name, entries in yaml.safe_load(config)["mig-configs"].items():
        gpus = Counter[str]()
        for entry in entries:
            devices = PER_NODE if entry["devices"] == "all" else len(entry["devices"])
            for profile, number in entry.get("mig-devices", {"gpu": 1}).items():
                gpus[GPU if profile == "gpu" else f"{MIG_SLICES}{profile}"] += devices * number
        found[name] = dict(gpus)
    return found


def install(plane: ControlPlane, grants: str, layouts: str) -> None:
    """Install the agents' manifests, but for their Deployments, as an owner does, and files of the plan.

    Args:
        plane: the control plane.
        grants: the names of layouts that `plimsoll-gpu` may set.
        layouts: the ConfigMap of mig-manager.

    Raises:
        Refused: kubectl fails, or the policy does not come into force.
    """
    kubectl = str(binaries.find(plane.version)["kubectl"])
    agents = Checkout.find().root / "infra" / "agent"
    manifests = [_run(kubectl, "kustomize", str(agents / each)) for each in _OVERLAYS]
    for text in (*manifests, grants, layouts):
        wanted = [each for each in yaml.safe_load_all(text) if each["kind"] != "Deployment"]
        _run(
            kubectl,
            *("--kubeconfig", str(plane.kubeconfig()), "apply", "--filename", "-"),
            given=yaml.safe_dump_all(wanted),
        )


def _run(*command: str, given: str = "") -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)  # noqa: S603 - kubectl of the rig
    if done.returncode:
        raise Refused(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class _Token:
    """The token of a ServiceAccount."""

    text: str = field(repr=False)

    def get(self) -> str:
        return self.text

    def forget(self) -> None:
        """Do nothing: it outlives the play."""


@dataclass(slots=True, kw_only=True)
class Parts:
    """The agent and a mig-manager on each node, at work in a thread while this is entered."""

    executor: GpuExecutor
    managers: list[MigManager]
    said: Output
    _ended: Event = field(default_factory=Event)
    _thread: Thread = field(init=False)

    @classmethod
    def of(cls, plane: ControlPlane, fleet: Fleet, layouts: str, said: Output) -> Self:
        """Return them for a fleet that has settled in.

        Args:
            plane: the control plane, with what `install` applied.
            fleet: the fleet on it.
            layouts: the configuration of mig-parted.
            said: hears what the agent says.
        """
        accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
        asked = {"spec": {"expirationSeconds": 3600}}
        token = fleet.send("POST", f"{accounts}/{_ACCOUNT}/token", asked)["status"]["token"]
        own, drain = (
            ClientTransport(plane.url, ca=plane.ca, token=_Token(token), as_user=user)
            for user in (None, DRAIN)
        )
        fleet.until(
            lambda: (
                own.call(
                    "PATCH",
                    f"/api/v1/nodes/{NODES[0]}",
                    query={"dryRun": "All"},
                    body=_FOREIGN,
                    content_type=MERGE_PATCH,
                ).status
                == 403  # noqa: PLR2004 - forbidden
            ),
            "the policy of plimsoll-gpu is not in force",
        )
        executor = put_together(own, drain, SystemClock(), said).executor
        given = supplies(layouts)
        managers = [
            MigManager(
                transport=fleet.api,
                node=name,
                layouts=given,
                gpus={GPU: PER_NODE},
                applying=APPLYING,
            )
            for name in NODES
        ]
        return cls(executor=replace(executor, limits=LIMITS), managers=managers, said=said)

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._run, name="gpus", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        clock = SystemClock()
        while not self._ended.wait(_ROUND_SECONDS):
            try:
                for manager in self.managers:
                    manager.step(clock.now())
                self.executor.round()
            except PlimsollError as error:
                self.said.warn("gpus: tried again later", because=str(error))
