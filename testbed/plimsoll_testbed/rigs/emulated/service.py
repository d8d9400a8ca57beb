"""The optimisation service, deployed on MiniStack: its API over HTTP, and who is let in to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from secrets import token_urlsafe
from typing import Any, Self, override

import boto3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from plimsoll.adapters.clock import SystemClock
from plimsoll_agent.identity import Identity
from plimsoll_agent.service import Service
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.members import DynamoMembers
from plimsoll_service.adapters.people_table import PeopleTable
from plimsoll_service.adapters.signers import KmsSigner, LocalSigner, signer_of
from plimsoll_service.adapters.tenants import AwsTenantData
from plimsoll_service.domain.access import JOIN_LIFE, Invitation, Role, session_policy
from plimsoll_service.services.access import digest_of
from plimsoll_service.wire.access import agents_join_token
from plimsoll_testbed.rigs.emulated.emulator import REGION
from plimsoll_testbed.rigs.emulated.ministack import MiniStack


class _EmulatedAws(ServiceAws):
    """AWS clients that talk to the emulator: with all rights, or with those of a session."""

    def __init__(self, emulator: MiniStack, credentials: Mapping[str, Any] | None = None) -> None:
        super().__init__(REGION)
        self._emulator = emulator
        self._credentials = credentials

    @override
    def _client(self, service: str) -> Any:
        if self._credentials is None:
            return self._emulator.client(service)
        return boto3.client(
            service,  # type: ignore[call-overload] # the stubs list every name as a Literal
            endpoint_url=self._emulator.url,
            region_name=REGION,
            aws_access_key_id=self._credentials["AccessKeyId"],
            aws_secret_access_key=self._credentials["SecretAccessKey"],
            aws_session_token=self._credentials["SessionToken"],
        )


@dataclass(slots=True)
class ServiceRig:
    """One deployed service. Use it as a context manager."""

    emulator: MiniStack = field(default_factory=MiniStack)
    clock: SystemClock = field(default_factory=SystemClock)
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Those of the stack beside the ones that a rig needs."""
    _exits: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        """Start the emulator and deploy the service.

        Raises:
            Refused: something is not installed or built, or the deployment failed.
        """
        with ExitStack() as exits:
            exits.enter_context(self.emulator)
            self.emulator.deploy(
                self.emulator.checkout.service_template,
                Rig="true",
                Size="small",  # each worker unpacks all layers when it starts
                WafRequestsPerAddress="0",  # the emulator cannot put a web ACL before an API
                **self.parameters,
            )
            self._take_bodies_as_they_are()
            self._tell_the_console_its_address()
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    @property
    def url(self) -> str:
        """Where the API is, with its stage."""
        return self.url_through(self.emulator.url)

    def url_through(self, server: str) -> str:
        """Return the API's URL at a server that hands requests on to the emulator."""
        return f"{server}/_aws/execute-api/{self.emulator.outputs['ApiId']}/live"

    @property
    def console_url(self) -> str:
        """Where the console is."""
        return f"{self.url}/console"

    @property
    def aws(self) -> ServiceAws:
        """AWS clients with all rights."""
        return _EmulatedAws(self.emulator)

    @property
    def people(self) -> PeopleTable:
        """Who signed in, and what groups are bound to."""
        return PeopleTable(aws=self.aws, table=self.emulator.outputs["PeopleTable"])

    @property
    def members(self) -> DynamoMembers:
        """Who was let in."""
        return DynamoMembers(
            aws=_EmulatedAws(self.emulator), table=self.emulator.outputs["MembersTable"]
        )

    def data(self, tenant: str) -> AwsTenantData:
        """Return the data of a tenant, as an operator with all rights sees it."""
        return AwsTenantData(
            aws=_EmulatedAws(self.emulator),
            table=self.emulator.outputs["DocumentsTable"],
            audit_table=self.emulator.outputs["AuditTable"],
            bucket=self.emulator.outputs["SnapshotsBucket"],
            tenant=tenant,
            clock=self.clock,
        )

    def session(self, tenant: str) -> ServiceAws:
        """Return AWS clients as a function has them that works for a tenant.

        The role of tenants trusts functions only; here it is told to trust us too.
        """
        database = self.emulator.client("dynamodb")
        table = database.describe_table(TableName=self.emulator.outputs["DocumentsTable"])
        configured = self._variables("ApiFunction")
        role, iam = configured["TENANT_ROLE"], self.emulator.client("iam")
        trusted = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
        iam.update_assume_role_policy(
            RoleName=role.rpartition("/")[2],
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trusted]}),
        )
        credentials = self.emulator.client("sts").assume_role(
            RoleArn=role,
            RoleSessionName=f"tenant-{tenant}",
            Policy=session_policy(
                tenant,
                table=table["Table"]["TableArn"],
                audit=configured["AUDIT_TABLE_ARN"],
                bucket=configured["SNAPSHOTS_BUCKET_ARN"],
            ),
        )["Credentials"]
        return _EmulatedAws(self.emulator, credentials)

    def signer(self) -> KmsSigner | LocalSigner:
        """Return the key by which the deployed advice signs instructions, and which agents pin."""
        key = self.emulator.outputs["InstructionKey"]
        return signer_of(_EmulatedAws(self.emulator), key, self.clock)

    def invite(self, tenant: str, name: str, role: Role) -> str:
        """Return a join token."""
        token = token_urlsafe(32)
        if role is Role.AGENT:
            token = agents_join_token(token, self.signer().public_key())
        expires = self.clock.now() + JOIN_LIFE - timedelta(minutes=1)
        invitation = Invitation(tenant=tenant, role=role, name=name, expires=expires)
        self.members.invite(digest_of(token), invitation)
        return token

    def enrolled(self, tenant: str, name: str, role: Role, *, url: str = "") -> tuple[str, Service]:
        """Let somebody in by a fresh key; return what the service calls them, and their client.

        Args:
            tenant: whose they are.
            name: of the cluster or the person.
            role: what they may ask for.
            url: of the API, for the client; empty: straight to the emulator.
        """
        key = Ed25519PrivateKey.generate()
        joining = Service(self.url, Identity(key), self.clock)
        answer = joining.enrol(self.invite(tenant, name, role), f"uid-of-{tenant}-{name}")
        identity = Identity(key, enrolled=answer)
        return answer.cluster_id, Service(url or self.url, identity, self.clock)

    def _variables(self, function: str) -> Mapping[str, str]:
        found = self.emulator.client("lambda").get_function_configuration(
            FunctionName=self.emulator.outputs[function]
        )
        variables: Mapping[str, str] = found["Environment"]["Variables"]
        return variables

    def _tell_the_console_its_address(self) -> None:
        """Set what a parameter holds elsewhere: here the address is known once the stack is deployed."""
        variables = {**self._variables("ConsoleFunction"), "CONSOLE_URL": self.console_url}
        self.emulator.client("lambda").update_function_configuration(
            FunctionName=self.emulator.outputs["ConsoleFunction"],
            Environment={"Variables": variables},
        )

    def _take_bodies_as_they_are(self) -> None:
        """Say again which bodies are binary: the emulator does not read it in the API's definition.

        Without it a compressed body is decoded as text. boto3 knows only single words here, so the
        request is completed on its way.
        """
        api = self.emulator.client("apigateway")

        def all_of_them(params: dict[str, Any], **_: object) -> None:
            operation = {"op": "replace", "path": "/binaryMediaTypes", "value": ["*/*"]}
            params["body"] = json.dumps({"patchOperations": [operation]}).encode()

        api.meta.events.register("before-call.apigateway.UpdateRestApi", all_of_them)
        api.update_rest_api(restApiId=self.emulator.outputs["ApiId"], patchOperations=[])
