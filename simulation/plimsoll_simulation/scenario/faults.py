"""The faults that a timeline can name. One is one line in the table, and what plays it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import GetPydanticSchema
from pydantic_core.core_schema import literal_schema

_EVERY_RIG: Final = frozenset({"simulated", "emulated", "cluster", "localstack"})
_SIMULATED: Final = frozenset({"simulated"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One line of the table."""

    breaks: str
    """What it does, as the reference says it."""
    needs: frozenset[str] = frozenset()
    """The fields that its entry must have, besides `at` and `for`."""
    takes: frozenset[str] = frozenset()
    """The fields that its entry may have."""
    rigs: frozenset[str] = _EVERY_RIG
    """The rigs that can play it."""


FAULTS: Final[Mapping[str, Fault]] = {
    "api-server-down": Fault(breaks="no answer from the cluster", takes=frozenset({"cluster"})),
    "api-server-slow": Fault(
        breaks="each answer takes latency longer",
        needs=frozenset({"latency"}),
        takes=frozenset({"cluster"}),
        rigs=_SIMULATED,
    ),
    "insufficient-capacity": Fault(
        breaks="requests for instances in the groups are refused with the cloud's own error",
        takes=frozenset({"nodes"}),
    ),
    "vcpu-quota": Fault(
        breaks="launches in the groups are refused since the account may run no more vCPUs",
        takes=frozenset({"nodes"}),
    ),
    "subnet-full": Fault(
        breaks="launches in the groups are refused since their subnets have no address left",
        takes=frozenset({"nodes"}),
    ),
    "launch-template-broken": Fault(
        breaks="launches in the groups are refused since their image does not exist",
        takes=frozenset({"nodes"}),
    ),
    "launches-throttled": Fault(
        breaks="launches in the groups are refused since EC2 limits the rate of requests",
        takes=frozenset({"nodes"}),
    ),
    "launches-stalled": Fault(
        breaks="the groups accept a larger size, and begin no launch",
        takes=frozenset({"nodes"}),
    ),
    "notices-lost": Fault(
        breaks="a fraction of the notices never arrives", takes=frozenset({"fraction"})
    ),
    "notices-duplicated": Fault(
        breaks="a fraction of the notices arrives twice, out of order",
        takes=frozenset({"fraction", "delay"}),
    ),
    "notices-delayed": Fault(
        breaks="a fraction of the notices arrives late",
        needs=frozenset({"delay"}),
        takes=frozenset({"fraction"}),
    ),
    "function-killed": Fault(
        breaks="on the simulated rig each run of function that starts in the time dies between "
        "two of its API calls; on the others each process that runs function is killed by signal "
        "at the beginning, and each that starts in the time within 3 s after",
        needs=frozenset({"function"}),
    ),
    "aws-throttled": Fault(
        breaks="a fraction of the calls to service is throttled",
        needs=frozenset({"service"}),
        takes=frozenset({"fraction"}),
        rigs=_SIMULATED,
    ),
}

type FaultName = Annotated[str, GetPydanticSchema(lambda *_: literal_schema([*FAULTS]))]


def faults_of(rig: str) -> frozenset[str]:
    """Return the faults that a rig can play."""
    return frozenset(name for name, fault in FAULTS.items() if rig in fault.rigs)
