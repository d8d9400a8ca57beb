"""aws-node-termination-handler in queue mode, with the events in a queue and the instances in an EC2 of its own.

Its binary is built from its source by whoever runs the benchmark. It reads no kubeconfig: token and
certificate must stand at the path of a pod, so it gets a mount namespace of its own, which needs root.
"""

from __future__ import annotations

import heapq
import itertools
import json
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from hashlib import md5
from pathlib import Path
from typing import Any, Final, Self, override
from urllib.parse import urlsplit

from plimsoll.domain.errors import Refused
from plimsoll_testbed.model.fleet import Fleet
from plimsoll_testbed.model.machines import Machine
from plimsoll_testbed.rigs.access import Access
from plimsoll_testbed.rigs.emulated.awswire import AwsServer, Parameters
from plimsoll_testbed.rigs.emulated.ec2 import Ec2
from plimsoll_testbed.rigs.emulated.walltime import WallTime

TUNED: Final = {"WORKERS": "50", "KUBE_API_QPS": "100", "KUBE_API_BURST": "200"}
VISIBILITY_SECONDS: Final = 20.0
WARM_SECONDS: Final = 5.0
POLL_SECONDS: Final = 0.1
_SECRETS: Final = "/run/secrets/kubernetes.io/serviceaccount"
_SCRIPT: Final = (
    f"""mount -t tmpfs tmpfs /run && mkdir -p {_SECRETS} && cp token ca.crt {_SECRETS}/ && exec """
)


class Queue:
    """A queue as SQS has it: what was received and not deleted comes again, after all the others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._waiting: list[tuple[float, int, str]] = []
        self._open: dict[str, str] = {}

    def send(self, body: str) -> None:
        """Add a message."""
        with self._lock:
            self._add(body, time.monotonic())

    def receive(self, parameters: Parameters) -> Mapping[str, Any]:
        """Return up to as many messages as are asked for, at the latest when the long poll is over."""
        end = time.monotonic() + parameters.get("WaitTimeSeconds", 0)
        while not (found := self._due(parameters.get("MaxNumberOfMessages", 1))):
            if time.monotonic() >= end:
                return {}
            time.sleep(POLL_SECONDS)
        return {"Messages": found}

    def delete(self, parameters: Parameters) -> Mapping[str, Any]:
        """Delete a message that was received."""
        with self._lock:
            self._open.pop(parameters["ReceiptHandle"], None)
        return {}

    def _add(self, body: str, due: float) -> str:
        number = next(self._numbers)
        heapq.heappush(self._waiting, (due, number, body))
        self._open[str(number)] = body
        return str(number)

    def _due(self, most: int) -> list[dict[str, str]]:
        found: list[dict[str, str]] = []
        with self._lock:
            now = time.monotonic()
            while self._waiting and self._waiting[0][0] <= now and len(found) < most:
                _, number, body = heapq.heappop(self._waiting)
                if self._open.pop(str(number), None) is not None:
                    handle = self._add(body, now + VISIBILITY_SECONDS)
                    found.append(
                        {
                            "MessageId": handle,
                            "ReceiptHandle": handle,
                            "Body": body,
                            "MD5OfBody": md5(body.encode(), usedforsecurity=False).hexdigest(),
                        }
                    )
        return found


class Handler(AbstractContextManager["Handler"]):
    """The handler; use it as a context manager."""

    def __init__(  # noqa: PLR0913 - what it needs to know of the world
        self,
        binary: Path,
        way: Access,
        machines: Sequence[Machine],
        fleet: Fleet,
        time: WallTime,
        *,
        tuned: bool,
    ) -> None:
        self._binary = binary.resolve(strict=True)
        self._way = way
        self._machines = machines
        self._queue = Queue()
        self._lock = time.lock
        self._instances = Ec2([fleet]).answers()["ec2:DescribeInstances"]
        self._server = AwsServer(
            {
                "ec2:DescribeInstances": self._described,
                "sqs:ReceiveMessage": self._queue.receive,
                "sqs:DeleteMessage": self._queue.delete,
            }
        )
        self._tuned = tuned
        self._exits = ExitStack()

    @override
    def __enter__(self) -> Self:
        """Start it.

        Raises:
            Refused: it ended at once.
        """
        self._exits.enter_context(self._server)
        folder = Path(self._exits.enter_context(tempfile.TemporaryDirectory()))
        (folder / "token").write_text(self._way.token)
        (folder / "ca.crt").write_text(self._way.ca or "")
        log = self._exits.enter_context((folder / "log").open("w"))
        process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", _SCRIPT + shlex.quote(str(self._binary))],
            cwd=folder,
            env=self._environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        self._exits.callback(process.wait)
        self._exits.callback(process.kill)
        time.sleep(WARM_SECONDS)
        if process.poll() is not None:
            self._exits.close()
            raise Refused(f"the handler ended: {(folder / 'log').read_text()[-2000:]}")
        return self

    @override
    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def go(self) -> None:
        """Put the events of all instances on the queue."""
        for machine in self._machines:
            self._queue.send(_event(machine))

    def _described(self, parameters: Parameters) -> Mapping[str, Any]:
        with self._lock:
            return self._instances(parameters)

    def _environment(self) -> dict[str, str]:
        api = urlsplit(self._way.url)
        return {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "ENABLE_SQS_TERMINATION_DRAINING": "true",
            "CHECK_TAG_BEFORE_DRAINING": "false",
            "QUEUE_URL": f"{self._server.url}/000000000000/notices",
            "AWS_ENDPOINT": self._server.url,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_EC2_METADATA_DISABLED": "true",
            "NODE_NAME": "handler",
            "POD_NAME": "handler",
            "NAMESPACE": "kube-system",
            "KUBERNETES_SERVICE_HOST": api.hostname or "",
            "KUBERNETES_SERVICE_PORT": str(api.port),
            **(TUNED if self._tuned else {}),
        }


def _event(machine: Machine) -> str:
    return json.dumps(
        {
            "version": "0",
            "id": machine.id,
            "detail-type": "EC2 Spot Instance Interruption Warning",
            "source": "aws.ec2",
            "account": "000000000000",
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "region": "us-east-1",
            "resources": [f"arn:aws:ec2:{machine.zone}:instance/{machine.id}"],
            "detail": {"instance-id": machine.id, "instance-action": "terminate"},
        }
    )
