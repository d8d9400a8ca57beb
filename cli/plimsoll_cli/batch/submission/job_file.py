"""The file of one job of several roles: read with every problem and its place."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from plimsoll_batch.adapters.documents import Strict
from plimsoll_batch.adapters.kubernetes.job_reader import MOST_PODS, MOST_SECONDS
from plimsoll_batch.adapters.queues_file import StatedPriority
from plimsoll_batch.domain.jobs import (
    LONGEST_TIMEOUT_SECONDS,
    MOST_CODES,
    MOST_POLICIES,
    MOST_RETRIES,
    MOST_ROLES,
    MOST_TIMES,
    Action,
    Event,
    Policy,
)

NATIVE: Final = frozenset({Action.RESTART_POD, Action.TERMINATE_JOB})
"""What the Job controller does by itself."""
LONGEST_HOST: Final = 63
"""Characters of a host name; the Job controller makes it of the Job's name and an index."""

type Label = Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$")]
type Seconds = Annotated[int, Field(ge=1, le=MOST_SECONDS)]
type Count = Annotated[int, Field(ge=0, le=1000)]


class PyTorch(Strict):
    """All ranks are pods of one role: the rank of a pod is its index."""

    role: Label
    port: Annotated[int, Field(ge=1, le=65535)] = 29500


class TensorFlow(Strict):
    """Roles are known by their names: chief, worker, ps and evaluator."""

    port: Annotated[int, Field(ge=1, le=65535)] = 2222


class Mpi(Strict):
    """A launcher, and workers that it reaches by ssh."""

    launcher: Label = "launcher"
    workers: Label = "workers"
    slots: Annotated[int, Field(ge=1, le=1024)] = 1
    implementation: Literal["openmpi", "mpich", "intel"] = "openmpi"


class FrameworkEntry(Strict):
    """For whose launcher the environment is set; one of them."""

    pytorch: PyTorch | None = None
    tensorflow: TensorFlow | None = None
    mpi: Mpi | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) > 1:
            raise ValueError("names more than one framework")
        return self


type Codes = Annotated[list[Annotated[int, Field(ge=0, le=255)]], Field(max_length=MOST_CODES)]
type Waits = Annotated[dict[Label, Literal["Ready", "Completed"]], Field(max_length=20)]


class PolicyEntry(Strict):
    """An event, and the action that it calls for."""

    event: Event
    action: Action
    exit_codes: Codes = Field(default_factory=list)
    except_exit_codes: Codes = Field(default_factory=list)
    times: Annotated[int, Field(ge=1, le=MOST_TIMES)] = 1
    timeout_seconds: Annotated[int, Field(ge=0, le=LONGEST_TIMEOUT_SECONDS)] = 0

    @model_validator(mode="after")
    def _sense(self) -> Self:
        if (problem := self.policy().problem()) is not None:
            raise ValueError(problem)
        return self

    def policy(self) -> Policy:
        """Return it in the planner's words."""
        return Policy(
            event=self.event,
            action=self.action,
            exit_codes=frozenset(self.exit_codes),
            except_codes=frozenset(self.except_exit_codes),
            times=self.times,
            timeout=timedelta(seconds=self.timeout_seconds),
        )


type Policies = Annotated[list[PolicyEntry], Field(max_length=MOST_POLICIES // 2 - 1)]


class RoleEntry(Strict):
    """Pods of one template: one Job."""

    name: Label
    pods: Annotated[int, Field(ge=1, le=MOST_PODS)] = 1
    template: dict[str, Any]
    """A pod template, as in a Job."""
    retries: Count | None = None
    """Of each of its pods."""
    succeeds_with: Annotated[int, Field(ge=1)] | None = None
    """So many pods that succeeded complete the role; without it all have to."""
    policies: Policies = Field(default_factory=list)
    """They count before those of the job."""
    after: Waits = Field(default_factory=dict)
    """It is started after these roles."""


class JobFile(Strict):
    """The whole file."""

    name: Label
    namespace: Label | None = None
    queue: str | None = None
    priority: StatedPriority | None = None
    topology: str | None = None
    start_seconds: Seconds | None = None
    on_interruption: Literal["suspend", "tell"] | None = None
    time_limit_seconds: Seconds | None = None
    ttl_seconds: Annotated[int, Field(ge=0, le=MOST_SECONDS)] | None = None
    """After it has finished, it is deleted."""
    policies: Policies = Field(default_factory=list)
    restarts: Annotated[int, Field(ge=0, le=MOST_RETRIES)] = 3
    """By its policies; then it is terminated."""
    after: Waits = Field(default_factory=dict)
    """It is considered after these jobs of its namespace."""
    framework: FrameworkEntry = FrameworkEntry()
    roles: Annotated[list[RoleEntry], Field(min_length=1, max_length=MOST_ROLES)]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Find what fields contradict each other in."""
        found = [
            f"two roles are named {name}"
            for name, count in Counter(role.name for role in self.roles).items()
            if count > 1
        ]
        for role in self.roles:
            host = f"{self.name}-{role.name}-{role.pods - 1}"
            if len(host) > LONGEST_HOST:
                found.append(f"the host name {host} is longer than {LONGEST_HOST} characters")
            if role.succeeds_with is not None and role.succeeds_with > role.pods:
                found.append(f"role {role.name}: succeedsWith is more than its pods")
            found += _wrong(role)
            found += [
                f"role {role.name}: it waits for role {other}, which is not there"
                for other in role.after
                if other not in {each.name for each in self.roles}
            ]
            if role.retries is not None and any(
                each.event in {Event.POD_FAILED, Event.ANY} and each.action not in NATIVE
                for each in (*role.policies, *self.policies)
            ):
                found.append(
                    f"role {role.name}: its retries would end it for good before a policy on PodFailed"
                    " could act: leave out one of them"
                )
        names = {role.name for role in self.roles}
        for name in self.named_roles():
            if name not in names:
                found.append(f"framework: there is no role {name}")
        if self.framework.tensorflow is not None and not names & {"chief", "worker"}:
            found.append("framework: tensorflow: no role is named chief or worker")
        if found:
            raise ValueError("; ".join(found))
        return self

    def named_roles(self) -> list[str]:
        """Return the roles that the framework names."""
        named = self.framework
        found = [named.pytorch.role] if named.pytorch is not None else []
        return found + ([named.mpi.launcher, named.mpi.workers] if named.mpi is not None else [])

    def role(self, name: str) -> RoleEntry:
        """Return a role by its name."""
        return next(role for role in self.roles if role.name == name)


def _wrong(role: RoleEntry) -> list[str]:
    """Say what of a template cannot be; the API server says the rest."""
    spec = role.template.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(containers, list) or not all(isinstance(each, dict) for each in containers):
        return [f"role {role.name}: template.spec.containers: must be a list of containers"]
    assert isinstance(spec, dict)  # noqa: S101 - its containers were found
    found = []
    if spec.get("restartPolicy", "Never") != "Never":
        found.append(
            f"role {role.name}: template.spec.restartPolicy: must be Never: the Job controller makes"
            " pods anew, by retries"
        )
    if "subdomain" in spec or "hostname" in spec:
        found.append(f"role {role.name}: template.spec: leave out hostname and subdomain")
    if not isinstance(role.template.get("metadata", {}), dict):
        found.append(f"role {role.name}: template.metadata: must be an object")
    return found
