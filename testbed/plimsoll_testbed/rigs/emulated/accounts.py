"""The emulated rig with clusters in several accounts: a hub, where the stack is, and spokes.

MiniStack keeps accounts apart by the key of who asks, and enforces the trust of roles with their external ids.
Two things it has not got are done here. It forwards no event to the bus of another account: the patterns of the
deployed rules, as it judges them itself, say what is forwarded and what the hub takes, and the event is then sent to
the queue that is the target. And it knows no policies of buses in templates, so that resource is left out.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, override

import yaml
from moto.core.request import Request
from werkzeug.wrappers import Response

from plimsoll.domain.notices import TABLE
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.rigs.access import Access
from plimsoll_simulation.scenario.drill import Drill
from plimsoll_testbed.rigs.emulated.awsfleet import SERVICES, AwsFleet
from plimsoll_testbed.rigs.emulated.awswire import LoopbackServer
from plimsoll_testbed.rigs.emulated.bus import Bus
from plimsoll_testbed.rigs.emulated.emulator import ACCOUNT, REGION, STACK, Emulator
from plimsoll_testbed.rigs.emulated.rig import Emulation

SPOKE_STACK: Final = "plimsoll-spoke"
HUB_BUS: Final = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default"
_KEY: Final = re.compile(r"Credential=([^/]+)/")
_NOT_THERE: Final = "AWS::Events::EventBusPolicy"
_SOURCES: Final = {detail_type: source for source, detail_type in TABLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoke:
    """The account of a cluster that is not in the hub's, and what the hub says to assume its role."""

    account: str
    external_id: str

    @property
    def role(self) -> str:
        """The ARN of the role that infra/spoke.yaml makes."""
        return f"arn:aws:iam::{self.account}:role/plimsoll-spoke-{REGION}"


class AccountsServer(LoopbackServer):
    """Hands each request to the fleets of the account whose credentials signed it.

    Args:
        fleets: by account.
        account_of: tells the account of an access key.
    """

    def __init__(self, fleets: Mapping[str, AwsFleet], account_of: Callable[[str], str]) -> None:
        super().__init__()
        self.fleets = fleets
        self.asked: defaultdict[str, list[str]] = defaultdict(list)
        """By account, what was asked there, as it was sent."""
        self._account_of = account_of

    @property
    def calls(self) -> Counter[str]:
        """How often each action was asked, in all accounts."""
        return sum((fleet.calls for fleet in self.fleets.values()), Counter[str]())

    @property
    def endpoints(self) -> Mapping[str, str]:
        """Service -> URL, as emulators take them."""
        return dict.fromkeys(SERVICES, self.url)

    @override
    def respond(self, request: Request) -> Response:
        """Answer in the account of whoever asks."""
        key = _KEY.search(request.headers.get("Authorization", ""))
        account = "nobody" if key is None else self._account_of(key.group(1))
        self.asked[account].append(f"{request.full_path} {request.get_data(as_text=True)}")
        if account not in self.fleets:
            return Response(f"the account {account} has no fleet", status=403)
        return self.fleets[account].respond(request)


class ForwardingBus(Bus):
    """Puts events of the hub on its bus, and takes those of spokes the way that their rules forward them.

    Args:
        emulator: where hub and spokes are deployed.
        account_of: tells the account that an event is from.
        more: as for `Bus`.
    """

    def __init__(
        self, emulator: Emulator, account_of: Callable[[Mapping[str, Any]], str], **more: Any
    ) -> None:
        super().__init__(emulator.client("events"), **more)
        self._emulator = emulator
        self._account_of = account_of
        self.forwarded: list[Mapping[str, Any]] = []

    @override
    def _put(self, bodies: list[str]) -> None:
        own = []
        for body in bodies:
            event = json.loads(body)
            account = self._account_of(event)
            if account == ACCOUNT:
                own.append(body)
            else:
                self._forward(
                    event | {"account": account, "source": _SOURCES[event["detail-type"]]}
                )
        super()._put(own)

    def _forward(self, event: Mapping[str, Any]) -> None:
        if HUB_BUS not in self._targets(event, event["account"]):
            return
        self.forwarded.append(event)
        queue = self._emulator.outputs["NoticesQueue"]
        role = self._emulator.outputs["RedriveRole"]
        for target in self._targets(event, ACCOUNT):
            if target.rpartition(":")[2] == queue.rpartition("/")[2]:
                sqs = self._emulator.client("sqs", role=role)
                sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(event))

    def _targets(self, event: Mapping[str, Any], account: str) -> Iterator[str]:
        """Yield the targets of those rules of an account that take an event."""
        events = self._emulator.client("events", account=account)
        for rule in events.list_rules()["Rules"]:
            pattern = rule.get("EventPattern")
            if (
                pattern
                and events.test_event_pattern(EventPattern=pattern, Event=json.dumps(event))[
                    "Result"
                ]
            ):
                for target in events.list_targets_by_rule(Rule=rule["Name"])["Targets"]:
                    yield target["Arn"]


class AccountsEmulation(Emulation):
    """One drill on an emulated AWS, with some of its clusters in other accounts than the stack.

    Args:
        drill: what is played.
        spokes: by cluster; the others are in the hub.
        external_id: what the roles in the spokes ask for.
        how: see `Emulation`.
    """

    def __init__(
        self, drill: Drill, *, spokes: Mapping[str, Spoke], external_id: str, **how: Any
    ) -> None:
        super().__init__(drill, rig="emulated", **how)
        self.spokes = spokes
        self._external_id = external_id
        self.emulator: Emulator
        self.aws: AccountsServer
        self.bus: ForwardingBus

    def account_of(self, cluster: str) -> str:
        """Return the account of a cluster."""
        return self.spokes[cluster].account if cluster in self.spokes else ACCOUNT

    @override
    def _aws(self, fleets: Sequence[Fleet]) -> AccountsServer:
        by_account: defaultdict[str, list[Fleet]] = defaultdict(list)
        for fleet in fleets:
            by_account[self.account_of(fleet.cluster)].append(fleet)
        served = {account: self._served(its) for account, its in by_account.items()}

        @cache
        def account_of(key: str) -> str:
            if key in served:  # the owner of an account
                return key
            found: str = self.emulator.client("sts").get_access_key_info(AccessKeyId=key)["Account"]
            return found

        self.aws = self._exits.enter_context(AccountsServer(served, account_of))
        return self.aws

    @override
    def _deploy(self, emulator: Emulator) -> None:
        self.emulator = emulator
        accounts = sorted({spoke.account for spoke in self.spokes.values()})
        folder = Path(self._exits.enter_context(tempfile.TemporaryDirectory()))
        emulator.deploy(
            _without_bus_policy(emulator.checkout.template, folder),
            AcceptDrills="true",
            Size="small",
            SpokeAccounts=",".join(accounts),
            RedrivePrincipals=f"arn:aws:iam::{ACCOUNT}:root",
        )
        for account in accounts:
            self._deploy_spoke(account)

    def _deploy_spoke(self, account: str) -> None:
        parameters = {
            "HubBus": HUB_BUS,
            "HubAccount": ACCOUNT,
            "HubStack": STACK,
            # The emulator says the session of a role where AWS says the role.
            "People": f"arn:aws:sts::{ACCOUNT}:assumed-role/{STACK}-*",
            "ExternalId": self._external_id,
        }
        cloudformation = self.emulator.client("cloudformation", account=account)
        cloudformation.create_stack(
            StackName=SPOKE_STACK,
            TemplateBody=(self.emulator.checkout.root / "infra/spoke.yaml").read_text(),
            Capabilities=["CAPABILITY_NAMED_IAM"],
            Parameters=[
                {"ParameterKey": name, "ParameterValue": value}
                for name, value in parameters.items()
            ],
        )
        waiter = cloudformation.get_waiter("stack_create_complete")
        waiter.wait(StackName=SPOKE_STACK, WaiterConfig={"Delay": 1, "MaxAttempts": 60})

    @override
    def _register(self, name: str, way: Access) -> None:
        spoke = self.spokes.get(name)
        if spoke is None:
            super()._register(name, way)
        else:
            self._stack.register(name, way, role=spoke.role, external_id=spoke.external_id)

    @override
    def _event_bus(self, emulator: Emulator) -> Bus:
        self.bus = ForwardingBus(
            emulator, self._account_of_event, clock=self.clock, reach=emulator.reach
        )
        return self.bus

    def _account_of_event(self, event: Mapping[str, Any]) -> str:
        said = json.dumps(event)
        return next(
            self.account_of(name)
            for name, cluster in self.rig_clusters.items()
            if any(machine in said for machine in cluster.fleet.machine)
        )


def _without_bus_policy(built: Path, folder: Path) -> Path:
    """Return a copy of the built template that the emulator can deploy."""
    found = yaml.safe_load(built.read_text())
    left_out = [n for n, r in found["Resources"].items() if r["Type"] == _NOT_THERE]
    for name in left_out:
        del found["Resources"][name]
    for artefact in built.parent.iterdir():
        if artefact.is_dir():
            (folder / artefact.name).symlink_to(artefact)
    copy = folder / built.name
    copy.write_text(yaml.safe_dump(found, sort_keys=False))
    return copy
