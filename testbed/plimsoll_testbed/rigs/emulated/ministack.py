"""MiniStack, the AWS side of the emulated rig.

Surprise: its functions run in the emulator's interpreter, whose packages stand behind the layers on
the path: a dependency missing from a layer may pass here, and a test on the built artefact looks
for exactly that. Rights are real: the roles of the template are enforced, but not for the services
that the fleet answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import override

from plimsoll_testbed.rigs.emulated.emulator import ACCOUNT, REGION, Emulator


@dataclass(slots=True, kw_only=True)
class MiniStack(Emulator):
    """One MiniStack. Use it as a context manager."""

    name = "MiniStack"
    ready_seconds = 180.0
    health = "/_ministack/health"
    complaining = (
        "Worker init failed",
        "Worker process exited",
        "Failed to extract layer",
        "errorType",
        "timed out",
        '"level":"ERROR"',
    )

    @override
    def _command(self) -> Sequence[str | Path]:
        return [self.checkout.ministack]

    @override
    def _settings(self, port: int) -> Mapping[str, str]:
        return {
            "BIND_HOST": "127.0.0.1",  # the default is every interface
            "GATEWAY_PORT": str(port),
            "MINISTACK_HOST": "127.0.0.1",
            "MINISTACK_REGION": REGION,
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "LAMBDA_EXECUTOR": "local",
            "AUTH": "true",  # functions may do what their roles allow, and nothing else
            "DOCKER_HOST": f"unix://{self._folder}/no-docker",  # never touch the user's containers
            "S3_DATA_DIR": str(self._folder / "s3"),
            "STATE_DIR": str(self._folder / "state"),
        }

    @override
    def _path(self) -> str:
        return f"{self.checkout.ministack.parent}:/usr/bin:/bin"

    @override
    def _place_of_workers(self, function: str) -> str:
        # Each runs a script in a folder that is named after its function, within this emulator's.
        return f"{self._folder}/ministack-lambda-{function}-"
