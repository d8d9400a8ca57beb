"""What `plimsoll demo service` plays on a deployed service: an agent, a person, and the advice between them.

The advice is made by itself, after each change. Here it is only waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from plimsoll.domain.errors import Refused
from plimsoll_agent.calls import POLICY
from plimsoll_agent.config import Config
from plimsoll_agent.loops import Loops
from plimsoll_agent.service import Service
from plimsoll_agent.wiring import put_together
from plimsoll_cli import main
from plimsoll_cli.lab.said import Said
from plimsoll_cli.service.agent import manifests
from plimsoll_cli.service.login import logged_in
from plimsoll_service.domain.access import Role
from plimsoll_service.wire.advice import Recommendation, Recommendations
from plimsoll_service.wire.audit import AuditRows
from plimsoll_service.wire.views import Pools
from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from plimsoll_simulation.rigs.access import Access
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_testbed.rigs.emulated.service import ServiceRig
from plimsoll_testbed.rigs.emulated.service_shop import surplus_shop

EXAMPLE: Final = Path("examples", "one-node.yaml")
WAIT: Final = timedelta(minutes=2)
"""How long a snapshot may take through the queue to the tables, and the advice that it asks for."""
POLL_SECONDS: Final = 0.2
TENANT: Final = "initech"
CLUSTER: Final = "shop"
PERSON: Final = "ann"
_OK: Final = 200
_STORED: Final = {"Namespace", "ServiceAccount", "Secret", "ConfigMap"}
"""Kinds of the agent's manifests that mean something to a fake cluster."""
_OWNERS_POLICY: Final = {"mode": "act", "kinds": "consolidate-node"}


def play(rig: ServiceRig, say: Callable[[str], None]) -> Recommendation:
    """Play the demo on a deployed service; return the recommendation that was carried out.

    Raises:
        PlimsollError: a part did not do its work; the message says which.
    """
    shop = surplus_shop(read_drill(rig.emulator.checkout.root / EXAMPLE), rig.clock.now())
    with (
        TemporaryDirectory(prefix="plimsoll-demo-") as folder,
        FakeApiServer(shop) as server,
    ):
        return _Demo(rig=rig, server=server, folder=Path(folder), say=say).play()


@dataclass(slots=True, kw_only=True)
class _Demo:
    """The agent of one cluster, and a person who reads what the service makes of it."""

    rig: ServiceRig
    server: FakeApiServer
    folder: Path
    say: Callable[[str], None]
    _agent: Loops = field(init=False)
    _person: Service = field(init=False)

    def play(self) -> Recommendation:
        self._install()
        token = self._invite(PERSON, Role.PERSON)
        self._type("login", self.rig.url, secret=["--join-token", token])
        self._person = logged_in(self.folder, self.rig.clock)
        self._tell()
        self._advised_first()
        self._type("savings")
        self._type("recommendations")
        chosen = next(each for each in self._recommendations() if each.executable)
        self._type("recommendations", "accept", chosen.id, "--version", str(chosen.version))
        asked = self._until(chosen, lambda each: each.instruction > 0 or each.state == "refused")
        if not asked.instruction:
            raise Refused(f"no instruction came of {asked.id}: {asked.note}")
        self._tell()
        if not self._agent.sender.pending:
            raise Refused(f"the agent was not told of instruction {asked.instruction}")
        self.say("the agent is told that an instruction waits, and carries it out")
        self._agent.executor.round()
        done = self._until(chosen, lambda each: each.state != "accepted")
        if done.state != "done":
            raise Refused(f"{done.id} is {done.state}: {done.note}")
        self.say(f"the empty node {done.about.name} is removed, as a cluster autoscaler would")
        self._remove(done.about.name)
        self._tell()
        seen = self._until(chosen, lambda each: each.seen_at is not None)
        self.say("the cluster shows it; the days after it tell what it saves")
        self._type("recommendations")
        self._type("recommendations", "savings")
        for row in self._person.call("GET", "/v1/audit", AuditRows).items:
            self.say(
                f"the audit log: {row.who} ({row.role}) {row.action} {row.object}, "
                f"version {row.version}: {row.outcome}"
            )
        return seen

    def _install(self) -> None:
        """Apply the agent's manifests and the owner's policy, and start the agent, which enrols."""
        self.say(f"installing the agent in the cluster {CLUSTER}, which lets it consolidate nodes")
        token = self._invite(CLUSTER, Role.AGENT)
        wanted = [m for m in manifests(self.rig.url, "none", token) if m["kind"] in _STORED]
        (policy,) = (m for m in wanted if m["metadata"]["name"] == POLICY)
        policy["data"] |= _OWNERS_POLICY
        clock = self.rig.clock
        with self.server.lock:
            self.server.cluster.apply(wanted, now=clock.now())
        config = Config(
            service=self.rig.url,
            spool=self.folder / "spool",
            spool_bytes=2**20,
            metrics_port=0,
        )
        access = Access(url=self.server.url, token=self.server.token)
        self._agent = put_together(access.transport(), config, clock, Said(clock, self.say))

    def _invite(self, name: str, role: Role) -> str:
        return self.rig.invite(TENANT, name, role)

    def _tell(self) -> None:
        """Let the agent send a snapshot, and wait until the service has worked it in."""
        sender, since = self._agent.sender, self.rig.clock.now()
        sender.take()
        sender.send()
        if sender.spool.entries or not sender.sequence:
            raise Refused("the agent's snapshot did not get to the service: see what it said")
        self.say(f"the agent has told of the cluster, snapshot {sender.sequence}")
        self._wait("the snapshot was not worked in", lambda: self._known_since(since))

    def _known_since(self, since: datetime) -> bool:
        try:
            found = self._person.call("GET", self._path("pools"), Pools)
        except Refused:  # 404 until the first one is worked in
            return False
        return found.taken_at >= since

    def _advised_first(self) -> None:
        """Wait for the advice that the first snapshot asks for."""
        self._wait(
            "nothing is advised that the agent can carry out",
            lambda: any(each.executable for each in self._recommendations()),
        )
        self.say("the advice has seen it")

    def _until(
        self, chosen: Recommendation, is_so: Callable[[Recommendation], bool]
    ) -> Recommendation:
        """Wait until the advice, which each change asks for, has made that of a recommendation."""
        self._wait(f"the advice left {chosen.id} as it was", lambda: is_so(self._again(chosen)))
        found = self._again(chosen)
        self.say(f"the advice has seen it: {found.kind} {found.about.name} is {found.state}")
        return found

    def _wait(self, otherwise: str, is_so: Callable[[], bool]) -> None:
        clock = self.rig.clock
        end = clock.now() + WAIT
        while not is_so():
            if clock.now() > end:
                raise Refused("\n".join([otherwise, *self.rig.emulator.complaints()]))
            clock.sleep(POLL_SECONDS)

    def _type(self, *words: str, secret: Sequence[str] = ()) -> None:
        """Run a command as a person would, who is logged in by a file in our folder."""
        self.say(f"$ plimsoll {' '.join(words)}")
        args = [words[0], "--config", str(self.folder), *words[1:], *secret]
        main.main(args=args, prog_name="plimsoll", standalone_mode=False)

    def _path(self, what: str) -> str:
        return f"/v1/clusters/{self._agent.sender.cluster_id}/{what}"

    def _recommendations(self) -> tuple[Recommendation, ...]:
        path = self._path("recommendations")
        return self._person.call("GET", path, Recommendations).recommendations

    def _again(self, chosen: Recommendation) -> Recommendation:
        return next(each for each in self._recommendations() if each.id == chosen.id)

    def _remove(self, node: str) -> None:
        with self.server.lock:
            answer = self.server.cluster.handle(
                "DELETE", f"/api/v1/nodes/{node}", now=self.rig.clock.now(), user="autoscaler"
            )
        if answer.status != _OK:
            raise Refused(f"DELETE node {node}: {answer.status} {answer.body}")
