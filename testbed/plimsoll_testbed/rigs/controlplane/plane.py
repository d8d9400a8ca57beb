"""A Kubernetes control plane on loopback: its real programs, with nodes and kubelets that are played.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler are the real ones. KWOK plays the
nodes, `fake_kubelets` the kubelets and the storage driver. Everything lives in a temporary folder and
dies with this process, however that ends. Several may run side by side.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self, override

from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.domain.errors import Refused, Temporary
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.fake_cluster.state import PodStopped
from plimsoll_simulation.rigs.access import Access
from plimsoll_testbed.rigs.controlplane import binaries, components
from plimsoll_testbed.rigs.controlplane.audit import Audit
from plimsoll_testbed.rigs.controlplane.fake_kubelets.process import FakeKubelets
from plimsoll_testbed.rigs.controlplane.modules import DEFAULT
from plimsoll_testbed.rigs.controlplane.nodes import Nodes
from plimsoll_testbed.rigs.controlplane.prepared import prepare, service_account_key
from plimsoll_testbed.rigs.controlplane.users import (
    CONTROLLERS,
    FAKE_KUBELETS,
    KWOK,
    SCHEDULER,
    Users,
)
from plimsoll_testbed.rigs.supervised import SupervisedProcess, listens, start_on_free_ports
from plimsoll_testbed.rigs.workbench import Workbench

READY_SECONDS: Final = 180.0
"""A cold disk cache makes the first start slow, since 360 MB of programs are read; so do others that start beside it."""
_POLL_SECONDS: Final = 0.05
_OK: Final = 200


class ControlPlane(AbstractContextManager["ControlPlane"]):
    """One control plane; use it as a context manager.

    Args:
        version: a minor of Kubernetes that `infra/local/controlplane` has; the environment's where it is None,
            else the default.
        users: more users, with their groups; `users.KNOWN` are always there.
        settings: how long pods and volumes take. What real controllers decide (`unreachable`,
            `orphans_…`, `volume_forced_detach`) is not read here.
        audited: the users whose requests are counted, for `calls`.
        flags: more flags of its programs, by their names: `kube-apiserver`, `kube-controller-manager`.
    """

    def __init__(
        self,
        *,
        version: str | None = None,
        users: Mapping[str, Sequence[str]] | None = None,
        settings: Settings | None = None,
        audited: Sequence[str] = (),
        flags: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.version: Final = version or Workbench.of_this_process().kubernetes or DEFAULT
        self._users = Users(users or {})
        self.settings: Final = settings or Settings()
        self._found: Mapping[str, Path] = {}
        self._audited = audited
        self._flags = flags or {}
        self._audit: Audit | None = None
        self._folder = Path()
        self._ports = components.Ports(etcd=0, peer=0, api=0)
        self._servers: dict[str, SupervisedProcess] = {}
        self._fake_kubelets: FakeKubelets | None = None
        self._nodes: Nodes | None = None
        self._listeners: list[Callable[[PodStopped], None]] = []
        self.api_up = False
        """Whether the API server was started and not stopped since."""

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return f"https://127.0.0.1:{self._ports.api}"

    @property
    def ca(self) -> str:
        """The certificate that signs the API server's, in PEM."""
        return (self._folder / "certificates" / "apiserver.crt").read_text(encoding="ascii")

    @property
    def log(self) -> Path:
        """The folder with a log for each program."""
        return self._folder / "logs"

    def access(self, user: str) -> Access:
        """Return the way of a user to the API server."""
        return Access(url=self.url, token=self._users.token(user), ca=self.ca)

    def kubeconfig(self, user: str = "admin") -> Path:
        """Return a kubeconfig of a user; it is gone when the control plane is."""
        file = self._folder / "kubeconfigs" / f"{user.replace(':', '-')}.json"
        if not file.exists():
            self._users.kubeconfig(user, url=self.url, ca=self.ca, file=file)
        return file

    def transport(self, user: str = "admin", *, connections: int = 16) -> ClientTransport:
        """Return a way for requests of a user, who is the field manager of what they write."""
        return self.access(user).transport(connections, user_agent=user)

    def calls(self, since: datetime) -> Counter[str]:
        """Return how many requests the audited users made since then, by HTTP method."""
        return Counter() if self._audit is None else self._audit.calls(since)

    def written(self) -> frozenset[str]:
        """Return what the audited users wrote or tried to, as in a role: `pods/eviction`."""
        return frozenset() if self._audit is None else self._audit.written()

    def on_pod_stopped(self, listener: Callable[[PodStopped], None]) -> None:
        """Call back, from a thread of its own, whenever a pod that ran stopped running."""
        self._listeners.append(listener)

    def join(self, *nodes: Mapping[str, Any]) -> None:
        """Let nodes join; return when the scheduler may use them.

        Raises:
            Refused: the API server did not take one, or it did not become Ready.
        """
        self._played().join(*nodes)

    def vanish(self, *names: str) -> None:
        """Let nodes' instances be gone: what ran there is killed, heartbeats end, nobody is told.

        What runs is killed on all of them before the first heartbeat ends. The Node objects stay for
        the caller to delete, as the cloud's controller would. While the API server is away this works too.
        """
        assert self._fake_kubelets is not None  # noqa: S101 - it was started
        self._fake_kubelets.vanish(names)
        self._played().vanish(names, now=self.api_up)

    def stop_api(self) -> None:
        """Kill the API server; etcd and all others stay."""
        self.api_up = False
        self._servers["kube-apiserver"].end(by_force=True)
        self._until(lambda: not listens(self._ports.api), "kube-apiserver does not end")

    def start_api(self) -> None:
        """Start the API server again on the same port, and wait until it is ready."""
        nodes, kwok = self._played(), self._servers["kwok"]
        # KWOK must not renew the lease of an instance that vanished meanwhile.
        kwok.tell(signal.SIGSTOP)
        try:
            self._servers["kube-apiserver"].start()
            self._await_api()
            nodes.catch_up()
        finally:
            kwok.tell(signal.SIGCONT)

    @override
    def __enter__(self) -> Self:
        """Start everything and wait until it is ready.

        Raises:
            Refused: the programs are not there, or one does not start; the message ends with logs.
        """
        self._found = binaries.find(self.version)
        start_on_free_ports(self._start, self.stop)
        return self

    @override
    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Stop everything.

        Raises:
            Refused: a program had ended by itself meanwhile, and what was seen cannot be trusted.
        """
        broken = self._complaint() if error is None else None
        self.stop()
        if broken is not None:
            raise Refused(broken)

    def stop(self) -> None:
        """Stop exactly what was started, and remove its folder. Twice is once."""
        self.api_up = False
        fake_kubelets, self._fake_kubelets = self._fake_kubelets, None
        if fake_kubelets is not None:
            fake_kubelets.stop()
        for server in reversed(self._servers.values()):
            server.end(by_force=True)  # it keeps nothing that is worth a graceful end
        self._servers = {}
        if self._folder.name:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        self._folder = folder = Path(tempfile.mkdtemp(prefix="plimsoll-control-plane-"))
        for name in ("logs", "kubeconfigs", "certificates"):
            (folder / name).mkdir()
        self._ports = ports = components.Ports.free()
        features = components.TURNED_ON.get(self.version, components.Features())
        self._users.write(folder / "tokens.csv")
        service_account_key(folder / "service-accounts.pem")
        self._run("etcd", components.etcd(folder, ports))
        self._audit = Audit(self._audited, folder)
        self._run(
            "kube-apiserver",
            [*components.api_server(folder, ports, features), *self._audit.flags],
        )
        self._await_api()
        admin = self.transport()
        prepare(admin)
        manager = components.controller_manager(self.kubeconfig(CONTROLLERS), features)
        self._run("kube-controller-manager", manager)
        self._run("kube-scheduler", components.scheduler(self.kubeconfig(SCHEDULER), features))
        self._run("kwok", components.kwok(self.kubeconfig(KWOK)))
        self._fake_kubelets = FakeKubelets(
            self.kubeconfig(FAKE_KUBELETS),
            log=self.log / "fake-kubelets.log",
            settings=self.settings,
            heard=self._heard,
        )
        self._fake_kubelets.start()
        self._nodes = Nodes(admin)

    def _await_api(self) -> None:
        self._until(lambda: self._ready() or self._broken(), "kube-apiserver is not ready")
        self.api_up = True

    def _run(self, name: str, flags: Sequence[str]) -> None:
        server = SupervisedProcess(
            name=name,
            command=[self._found[name], *flags, *self._flags.get(name, ())],
            folder=self._folder,
            log=self.log / f"{name}.log",
        )
        self._servers[name] = server
        server.start()

    def _ready(self) -> bool:
        if not (self._folder / "certificates" / "apiserver.crt").exists():
            return False
        if not listens(self._ports.api):
            return False
        try:
            return self.transport().call("GET", "/readyz").status == _OK
        except (Temporary, Refused):
            return False

    def _broken(self) -> bool:
        if (complaint := self._complaint()) is not None:
            raise Refused(complaint)
        return False

    def _complaint(self) -> str | None:
        """Return what is to be said of programs that ended by themselves; None if all run."""
        parts: list[SupervisedProcess | FakeKubelets] = [*self._servers.values()]
        if self._fake_kubelets is not None:
            parts.append(self._fake_kubelets)
        ended = [part for part in parts if part.ended]
        if not ended:
            return None
        names = " and ".join(part.name for part in ended)
        return "\n".join([f"{names} ended by itself:", *(part.tail() for part in ended)])

    def _until(self, holds: Callable[[], bool], otherwise: str) -> None:
        end = time.monotonic() + READY_SECONDS
        while not holds():
            if time.monotonic() > end:
                logs = "\n".join(server.tail() for server in self._servers.values())
                raise Refused(f"{otherwise} after {READY_SECONDS:.0f} s:\n{logs}")
            time.sleep(_POLL_SECONDS)

    def _played(self) -> Nodes:
        assert self._nodes is not None  # noqa: S101 - it was started
        return self._nodes

    def _heard(self, stopped: PodStopped) -> None:
        for listener in self._listeners:
            listener(stopped)
