"""A deployed stack as CloudFormation describes it: how the command line finds tables and queues."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ProfileNotFound

from plimsoll.adapters.aws_errors import code_of, translate, translated
from plimsoll.domain.errors import BadInput, Refused, Temporary

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws


CLUSTER_ROLES: Final = ("NoticesRole", "DrainsRole", "PlacementRole", "SweepRole")
"""The roles that come to clusters, by their names in the template."""
RESERVES: Final[Mapping[str, Mapping[str, int]]] = {
    size: {
        "NoticesFunction": each,
        "DrainsFunction": each,
        "SweepFunction": resyncs,
        "ScheduleFunction": 1,
        "PlacementFunction": 1,
    }
    for size, each, resyncs in (("small", 3, 2), ("usual", 10, 10), ("large", 50, 50))
}
"""Size of a stack -> function -> how many of it run at once. The template says so, and a test compares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Outputs and parameters of one stack."""

    name: str
    account: str
    region: str
    status: str
    outputs: Mapping[str, str]
    parameters: Mapping[str, str]

    @property
    def version(self) -> str | None:
        """The version of Plimsoll; None: the stack is too old to state one."""
        return self.outputs.get("Version")

    @property
    def kill_switch(self) -> bool:
        """Whether every write is stopped."""
        return self.parameters.get("KillSwitch") == "true"

    @property
    def accepts_drills(self) -> bool:
        """Whether notices of drills are taken as real."""
        return self.parameters.get("AcceptDrills") == "true"

    @property
    def size(self) -> str:
        """How much of it runs at once: a key of the template's mapping of concurrency."""
        return self.parameters.get("Size", "usual")

    @property
    def reserves(self) -> Mapping[str, int]:
        """How much concurrency the template reserves for each function, by the output of the stack."""
        return RESERVES[self.size]

    def command(self, *words: str) -> str:
        """Return a command line of `plimsoll` that acts on this stack, also in a shell with another PLIMSOLL_STACK."""
        return command(self.name, *words)

    def output(self, name: str) -> str:
        """Return an output.

        Raises:
            BadInput: the stack has none of that name: it is another stack, or an older one.
        """
        if name not in self.outputs:
            raise BadInput(
                f"the stack {self.name} has no output {name}: name the stack of Plimsoll with "
                "--stack, or deploy it again (make deploy)"
            )
        return self.outputs[name]


def command(stack: str, *words: str) -> str:
    """Return a command line of `plimsoll` that acts on the stack of a name."""
    return shlex.join(["plimsoll", *words, "--stack", stack])


def describe(aws: Aws, name: str) -> Stack:
    """Ask CloudFormation for a stack.

    Raises:
        BadInput: there is no such stack.
        Refused: there are no credentials, no region, or no right to ask.
        Temporary: there is no answer.
    """
    what = f"describe the stack {name}"
    try:
        region = aws.region
    except ProfileNotFound as error:
        raise BadInput(f"{error}: `aws configure list-profiles` lists them") from error
    if not region:
        raise Refused(
            "no region is set: export AWS_DEFAULT_REGION, or choose a profile that has one "
            "(AWS_PROFILE)"
        )
    try:
        answer = aws.client("cloudformation").describe_stacks(StackName=name)
    except ClientError as error:
        if code_of(error) == "ValidationError":
            raise BadInput(
                f"there is no stack {name} in {region}: deploy it (make deploy), or name another "
                "with --stack or PLIMSOLL_STACK, or set AWS_DEFAULT_REGION to where it is"
            ) from error
        raise translate(error, what) from error
    except NoCredentialsError as error:
        raise Refused(
            f"{what}: there are no AWS credentials: run `aws configure` or `aws sso login`, or "
            "choose a profile (AWS_PROFILE)"
        ) from error
    except BotoCoreError as error:
        raise Temporary(f"{what}: {error}") from error
    found = answer["Stacks"][0]
    return Stack(
        name=name,
        account=_place(found)[1],
        region=region,
        status=found["StackStatus"],
        outputs={o["OutputKey"]: o["OutputValue"] for o in found.get("Outputs", [])},
        parameters={p["ParameterKey"]: p["ParameterValue"] for p in found.get("Parameters", [])},
    )


def roles(aws: Aws, name: str) -> Sequence[str]:
    """Return the ARNs of the roles under which a stack's functions come to clusters.

    Raises:
        PlimsollError: CloudFormation cannot be asked, or there is no such stack.
    """
    with translated(f"list the roles of the stack {name}"):
        answer = aws.client("cloudformation").describe_stack_resources(StackName=name)
    found = {r["LogicalResourceId"]: r for r in answer["StackResources"]}
    arns = []
    for role in CLUSTER_ROLES:
        if role in found:
            partition, account = _place(found[role])
            physical = found[role]["PhysicalResourceId"]
            arns.append(f"arn:{partition}:iam::{account}:role/{physical}")
    return arns


def _place(of_stack: Mapping[str, Any]) -> tuple[str, str]:
    """Return partition and account out of the id of a stack."""
    _, partition, _, _, account, _ = of_stack["StackId"].split(":", 5)
    return partition, account
