"""The AWS side of a rig in wall-clock time: an emulator on loopback, with the built template deployed.

It runs in an environment and a folder of its own and dies with this process, however that ends
(`supervisor`). A function that fails to start says so only in the emulator's log: `complaints` brings it
out. What is the same for every emulator stands here; `ministack` and `plimsoll_testbed.rigs.localstack`
say how theirs are started, and what is different in them.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, Final, Self, override

import boto3
from botocore.config import Config

from plimsoll.domain.errors import Refused
from plimsoll_simulation.checkout import Checkout
from plimsoll_testbed.rigs.emulated.bus import REACH
from plimsoll_testbed.rigs.supervised import (
    SupervisedProcess,
    environment,
    free_port,
    start_on_free_ports,
    tail_of,
)

REGION: Final = "us-east-1"
ACCOUNT: Final = "123456789012"
STACK: Final = "drill"
DEPLOY_SECONDS: Final = 600.0
_BUCKET: Final = "artefacts"


@dataclass(slots=True, kw_only=True)
class Emulator(AbstractContextManager["Emulator"], ABC):
    """One emulated AWS. Use it as a context manager."""

    name: ClassVar[str]
    """What people call it."""
    ready_seconds: ClassVar[float]
    """How long its start may take."""
    deploy_seconds: ClassVar[float] = DEPLOY_SECONDS
    reach: ClassVar[timedelta] = REACH
    """How long an event may be on its way until what it causes is written down."""
    health: ClassVar[str]
    """A path that answers once it is ready."""
    complaining: ClassVar[Sequence[str]]
    """Words of those lines of its log that say that a function failed."""

    checkout: Checkout = field(default_factory=Checkout.find)
    endpoints: Mapping[str, str] = field(default_factory=dict)
    """Service in boto3's spelling of `AWS_ENDPOINT_URL_<SERVICE>` -> URL, for the functions."""
    url: str = field(init=False, default="")
    outputs: Mapping[str, str] = field(init=False, default_factory=dict)
    """The deployed stack's outputs."""
    _folder: Path = field(init=False)
    _process: SupervisedProcess | None = field(init=False, default=None)

    @override
    def __enter__(self) -> Self:
        """Start it and wait until it answers.

        Raises:
            Refused: it is not installed, or does not start; the message ends with its log.
        """
        start_on_free_ports(self._start, self.stop)
        return self

    @override
    def __exit__(self, *_: object) -> None:
        self.stop()

    def deploy(
        self, template: Path | None = None, *, beside: str = "", **parameters: str
    ) -> Mapping[str, str]:
        """Deploy a built template with `sam deploy`, and return the stack's outputs.

        Args:
            template: the built one; the interruption path's where none is given.
            beside: the name of a stack beside the one whose outputs are kept here; empty: it is that one.
            parameters: of the template.

        Raises:
            Refused: the deployment failed; the message ends with what SAM and the emulator said.
        """
        self.client("s3").create_bucket(Bucket=_BUCKET)
        command: list[str | Path] = [
            self.checkout.sam,
            "deploy",
            f"--template-file={template or self.checkout.template}",
            f"--stack-name={beside or STACK}",
            f"--s3-bucket={_BUCKET}",
            f"--region={REGION}",
            "--capabilities=CAPABILITY_IAM",
            "--no-confirm-changeset",
            "--no-fail-on-empty-changeset",
            "--config-env=emulated",  # none of samconfig.toml's answers are for here
        ]
        if parameters:
            # SAM splits what is not quoted at spaces.
            quoted = {n: f'"{v}"' if " " in v else v for n, v in parameters.items()}
            pairs = [f"{name}={value}" for name, value in sorted(quoted.items())]
            command += ["--parameter-overrides", *pairs]
        done = subprocess.run(  # noqa: S603 - our own SAM CLI
            command,
            cwd=self._folder,
            env=environment(self._folder) | self._environment() | {"AWS_ENDPOINT_URL": self.url},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.deploy_seconds,
            check=False,
        )
        if done.returncode:
            raise Refused(
                f"sam deploy failed:\n{done.stdout[-4000:]}\n{tail_of(self.name, self.log)}"
            )
        described = self.client("cloudformation").describe_stacks(StackName=beside or STACK)
        [stack] = described["Stacks"]
        outputs = {o["OutputKey"]: o["OutputValue"] for o in stack.get("Outputs", [])}
        if not beside:
            self.outputs = outputs
        return outputs

    def warm(self, function: str, workers: int) -> None:
        """Start workers of a queue's function, so that the first messages need not wait for them.

        Here a cold start is the unpacking of all layers and the compiling of all modules, for each
        worker anew: seconds that Lambda does not take.

        Args:
            function: its name in the outputs.
            workers: how many, side by side.

        Raises:
            Refused: it does not start; the message says why.
        """

        def start(_: int) -> str | None:
            answer = self.client("lambda").invoke(
                FunctionName=self.outputs[function], Payload=b'{"Records": []}'
            )
            said: str = answer["Payload"].read().decode(errors="replace")
            return said if "FunctionError" in answer else None

        with ThreadPoolExecutor(workers) as threads:
            failures = [said for said in threads.map(start, range(workers)) if said]
        if failures:
            raise Refused(
                f"{function} does not start: {failures[0]}\n{tail_of(self.name, self.log)}"
            )

    def workers(self, function: str) -> Sequence[int]:
        """Return the processes that run a function just now; `function` is as in the outputs.

        Raises:
            Refused: this machine has no `ps`.
        """
        place = self._place_of_workers(self.outputs[function])
        try:
            listed = subprocess.run(
                # -ww: without it a width from somewhere may cut the very part that tells them apart.
                ["ps", "-A", "-ww", "-o", "pid=", "-o", "args="],  # noqa: S607 - wherever POSIX has it
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        except FileNotFoundError as error:
            raise Refused("there is no `ps` on this machine: install procps") from error
        lines = (line.split(maxsplit=1) for line in listed.stdout.splitlines())
        return [int(pid) for pid, args in lines if place in args]

    def client(self, service: str, *, account: str = ACCOUNT, role: str | None = None) -> Any:
        """Return a boto3 client of the emulator: of the owner of an account, or of who assumes a role there."""
        key, secret, token = account, "none", None  # the emulator asks for none
        if role is not None:
            sts = self.client("sts", account=account)
            found = sts.assume_role(RoleArn=role, RoleSessionName="rig")["Credentials"]
            key, secret, token = (
                found[part] for part in ("AccessKeyId", "SecretAccessKey", "SessionToken")
            )
        session = boto3.Session(
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            aws_session_token=token,
            region_name=REGION,
        )
        return session.client(
            service,  # type: ignore[call-overload] # the stubs list every name as a Literal
            endpoint_url=self.url,
            config=Config(retries={"mode": "standard", "total_max_attempts": 3}),
        )

    @property
    def log(self) -> Path:
        """The emulator's log, with the output of every function in it."""
        return self._folder / "emulator.log"

    def complaints(self) -> Sequence[str]:
        """Return the lines of the log that say that a function failed to start, or failed."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [line for line in lines if is_complaint(line, self.complaining)]

    def stop(self) -> None:
        """Stop exactly what was started, and remove its folder. Twice is once."""
        if self._process is not None:
            self._process.end()
        shutil.rmtree(self._folder, ignore_errors=True)

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """Return what starts it.

        Raises:
            Refused: something that it needs is missing; the message names the cure.
        """

    @abstractmethod
    def _settings(self, port: int) -> Mapping[str, str]:
        """Return what it is told by its environment, beside what every program here is told."""

    @abstractmethod
    def _path(self) -> str:
        """Return its PATH."""

    @abstractmethod
    def _place_of_workers(self, function: str) -> str:
        """Return what stands in the command line of each process that runs a function, and no other."""

    def _start(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="plimsoll-emulator-"))
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        fleet = {f"AWS_ENDPOINT_URL_{service}": url for service, url in self.endpoints.items()}
        process = self._process = SupervisedProcess(
            name=self.name,
            command=self._command(),
            folder=self._folder,
            log=self.log,
            environment={**self._environment(), **self._settings(port), **fleet},
        )
        process.start()
        end = time.monotonic() + self.ready_seconds
        while time.monotonic() < end:
            if process.ended:
                raise Refused(f"{self.name} ended at once:\n{tail_of(self.name, self.log)}")
            try:
                with urllib.request.urlopen(f"{self.url}{self.health}", timeout=1):  # noqa: S310 - our own http URL
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise Refused(
            f"{self.name} was not ready after {self.ready_seconds:.0f} s:\n{tail_of(self.name, self.log)}"
        )

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": self._path(),
            "AWS_ACCESS_KEY_ID": ACCOUNT,
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "SAM_CLI_TELEMETRY": "0",
        }


def is_complaint(line: str, complaining: Sequence[str]) -> bool:
    """Whether a line says that a function failed, or failed to start.

    What a function logs itself tells by its level: a warning may quote a call that timed out. Errors
    that are named for coming back do so, and what that costs is measured.
    """
    if '"level":"' in line:
        return '"level":"ERROR"' in line and '"exception_name":"Temporary"' not in line
    return any(words in line for words in complaining)
