"""How long the function `notices` takes from nothing to its first patch, as it was built.

Each run is a fresh process: interpreter, imports from the built artefact, AWS clients,
a GET and a PATCH of one node over HTTP to a fake cluster, DynamoDB and
Secrets Manager on the emulator. The clock stops when the fake cluster has the PATCH. As a bound, a
process that imports urllib3 and sends such a PATCH. Run it from the repository, after `make build`:

    .venv/bin/python -m benchmarks.cold_start [--runs 15]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from threading import RLock
from typing import Any

from rich.console import Console

from benchmarks.output import machine, spread, table
from plimsoll.adapters.clock import SystemClock
from plimsoll_simulation.checkout import Checkout
from plimsoll_simulation.durations import Span
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_aws.machines import Machine, node_object
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from plimsoll_simulation.rigs.access import Access
from plimsoll_simulation.scenario.events import event_of
from plimsoll_testbed.rigs.emulated.awsfleet import AwsFleet
from plimsoll_testbed.rigs.emulated.emulator import ACCOUNT, REGION, Emulator
from plimsoll_testbed.rigs.emulated.ministack import MiniStack
from plimsoll_testbed.rigs.emulated.stack import Stack, resync

HERE = Path(__file__).parent
STARTUP = timedelta(seconds=70)
NOTICE = timedelta(seconds=120)
TOTAL = "process start to PATCH"
PROCESSOR = "its processor time"
EVENT = "event to PATCH, once it is started"
MILLISECONDS = "{:,.0f} ms"


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A deployed stack, its cluster, and a node for every run."""

    stack: Emulator
    server: FakeApiServer
    machines: list[Machine]
    patches: list[float]
    """When the cluster got a PATCH, on the monotonic clock."""


@contextmanager
def ground(nodes: int) -> Iterator[Ground]:
    clock = SystemClock()
    now = clock.now()
    group = NodeGroupSpec(
        name="spot",
        kind="asg",
        capacity="spot",
        instance_type="m5.2xlarge",
        zones=("us-east-1a",),
        size=nodes,
        max=nodes,
        startup=Span(least=STARTUP, most=STARTUP),
        allocatable={"cpu": "7910m", "memory": "29Gi", "pods": "58"},
    )
    fleet = Fleet("harbor", [group], seed=0, now=now)
    fleet.step(now)
    cluster = FakeCluster(now=now)
    machines = list(fleet.alive())
    for started in machines:
        cluster.join(node_object(started), now=now)
    patches: list[float] = []

    def called(verb: str) -> None:
        if verb == "PATCH":
            patches.append(time.monotonic())

    with ExitStack() as exits:
        lock = RLock()
        server = exits.enter_context(FakeApiServer(cluster, lock=lock, called=called))
        aws = exits.enter_context(AwsFleet([fleet], clock=clock.now, lock=lock))
        ministack = exits.enter_context(MiniStack(endpoints=aws.endpoints))
        ministack.deploy(AcceptDrills="true", Size="small")
        stack = Stack(ministack, aws)
        stack.register("harbor", Access(url=server.url, token=server.token))
        resync(ministack, "harbor")
        yield Ground(stack=ministack, server=server, machines=machines, patches=patches)


def environment(ground: Ground) -> dict[str, str]:
    """Return the environment of the deployed function, with the built artefact on its path."""
    functions = ground.stack.client("lambda")
    name = ground.stack.outputs["NoticesFunction"]
    deployed = functions.get_function_configuration(FunctionName=name)
    # Its queues take messages from the roles of the stack only.
    sts = ground.stack.client("sts")
    own = sts.assume_role(RoleArn=deployed["Role"], RoleSessionName=name)["Credentials"]
    built = Checkout.find().template.parent
    path = ("NoticesFunction", "CoreLayer/python")
    return {
        **deployed["Environment"]["Variables"],
        **{f"AWS_ENDPOINT_URL_{key}": url for key, url in ground.stack.endpoints.items()},
        "AWS_ENDPOINT_URL": ground.stack.url,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": own["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": own["SecretAccessKey"],
        "AWS_SESSION_TOKEN": own["SessionToken"],
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "PYTHONPATH": os.pathsep.join(str(built / part) for part in path),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
    }


def event(machine: Machine) -> str:
    now = SystemClock().now()
    # As from the account of the emulator: notices of another one are not ours.
    body = event_of("spot-interruption", machine, now, goes=now + NOTICE)
    assert body is not None, "a spot interruption is an event"
    body["account"] = ACCOUNT
    record = {
        "messageId": "1",
        "receiptHandle": "1",
        "body": json.dumps(body),
        "attributes": {"ApproximateReceiveCount": "1"},
    }
    return json.dumps({"Records": [record]})


def cold(ground: Ground, machine: Machine, variables: Mapping[str, str]) -> dict[str, float]:
    """Run the function once in a fresh process, and return its parts in seconds."""
    ground.patches.clear()
    command = [sys.executable, str(HERE / "cold_runtime.py"), event(machine)]
    began = time.monotonic()
    done = subprocess.run(command, env=dict(variables), capture_output=True, text=True, check=False)
    if done.returncode or not ground.patches:
        raise SystemExit(f"the function did not patch:\n{done.stdout}{done.stderr}")
    told: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
    if ".aws-sam" not in told["file"]:
        raise SystemExit(f"{told['file']} is not the built artefact")
    moments, spent = told["moments"], told["spent"]
    aws = sum(seconds for part, seconds in spent.items() if part.startswith("AWS "))
    parts = {
        "interpreter": moments["began"] - began,
        "imports of the function": moments["ready"]
        - moments["began"]
        - sum(told["ready"].values()),
        "AWS clients": spent["clients"],
        "calls to AWS": aws,
        "GET of the node": spent["GET cluster"],
        "PATCH, until the cluster has it": ground.patches[0] - moments["PATCH"],
    }
    total = ground.patches[0] - began
    return {
        TOTAL: total,
        PROCESSOR: spent["processor"],
        EVENT: ground.patches[0] - moments["ready"],
        **parts,
        "the rest": total - sum(parts.values()),
    }


def bare(ground: Ground, machine: Machine) -> float:
    ground.patches.clear()
    command = [sys.executable, str(HERE / "bare.py"), ground.server.url, ground.server.token]
    began = time.monotonic()
    subprocess.run([*command, machine.node], check=True)
    return ground.patches[0] - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    chosen = parser.parse_args()
    on = machine("boto3", "urllib3", "plimsoll")
    with ground(2 * chosen.runs + 1) as here:
        variables = environment(here)
        first, *machines = here.machines
        cold(here, first, variables)  # reads the files into the page cache
        colds = [cold(here, machine, variables) for machine in machines[: chosen.runs]]
        bares = [bare(here, machine) for machine in machines[chosen.runs :]]
    title = "notices, from nothing to its first patch"
    shown = table(title, "part", "median", "fastest", "slowest")
    for part in colds[0]:
        figures = spread([1000 * run[part] for run in colds], MILLISECONDS)
        whole = part in {TOTAL, PROCESSOR, EVENT}
        shown.add_row(f"{'' if whole else '  '}{part}", *figures, end_section=part == EVENT)
    shown.add_section()
    bound = spread([1000 * run for run in bares], MILLISECONDS)
    shown.add_row("bound: urllib3 and one PATCH", *bound)
    console = Console(width=120)
    console.print(f"{on}; {chosen.runs} runs")
    console.print(shown)


if __name__ == "__main__":
    main()
