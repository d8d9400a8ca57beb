"""The rig `localstack`: the emulated rig with LocalStack 4.14 in the place of its emulator.

The clusters are fake, as on the emulated rig. What LocalStack has not (Auto Scaling, EKS) and
what it has thinly (EC2) the drill's own fleet answers. There is no container engine.

It runs in an environment of its own with a plugin of ours (`infra/local/localstack/plugin`), which
runs functions as processes and DynamoDB from the files that make fetched. Nothing is fetched and
nothing is told to anybody while it runs. Surprises, of which `docs/develop/rigs.md` says more: it enforces
no rights, re-writes the JSON in messages between queue and function, and asks each queue with one
reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import override

from plimsoll_simulation.rigs.registry import Rig
from plimsoll_simulation.rigs.run import rig_of_runs
from plimsoll_testbed.rigs.emulated.emulator import Emulator
from plimsoll_testbed.rigs.emulated.rig import Emulation
from plimsoll_testbed.rigs.localstack.java import java


@dataclass(slots=True, kw_only=True)
class LocalStack(Emulator):
    """One LocalStack. Use it as a context manager."""

    name = "LocalStack"
    ready_seconds = 120.0
    deploy_seconds = 600.0
    reach = timedelta(seconds=30)  # one reader for each queue: a reconcile waits for the one before
    health = "/_localstack/health"
    complaining = (
        "plimsoll_localstack: ",
        "Traceback (most recent call last)",
        "[ERROR]",
        '"level":"ERROR"',
    )

    @override
    def _command(self) -> Sequence[str | Path]:
        return [self.checkout.localstack, "-m", "localstack.runtime.main"]

    @override
    def _settings(self, port: int) -> Mapping[str, str]:
        return {
            "GATEWAY_LISTEN": f"127.0.0.1:{port}",
            "LOCALSTACK_HOST": f"127.0.0.1:{port}",  # in the URLs of queues
            "FILESYSTEM_ROOT": str(self._folder / "localstack"),
            "LS_LOG": "warning",
            # Nobody is asked and nothing is told, as the recipe of a run without the internet wants it.
            "DNS_ADDRESS": "0",
            "DISABLE_EVENTS": "1",
            "SKIP_SSL_CERT_DOWNLOAD": "1",
            "DOCKER_HOST": f"unix://{self._folder}/no-docker",  # never touch the user's containers
            "SQS_ENDPOINT_STRATEGY": "path",
            # A reader that found nothing would look away for up to ten seconds.
            "LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC": "0.1",
            "LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC": "0.1",
            "LAMBDA_RUNTIME_EXECUTOR": "process",
            "PLIMSOLL_JAVA": java(),
            "PLIMSOLL_DYNAMODB_LOCAL": str(self.checkout.dynamodb_local),
        }

    @override
    def _path(self) -> str:
        return f"{self.checkout.localstack.parent}:/usr/bin:/bin"

    @override
    def _place_of_workers(self, function: str) -> str:
        return f" {self._folder}/{function}"  # the last word of each, by the plugin's `Worker`


run: Rig = rig_of_runs(partial(Emulation, emulators=LocalStack, rig="localstack"))
