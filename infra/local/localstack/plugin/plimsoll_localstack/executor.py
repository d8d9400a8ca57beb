"""Lambda without containers: each execution environment of LocalStack is one process.

What Lambda promises and this keeps: layers on the path, the deadline, a process that is killed when
its time is over, and a new one for the next invocation. What it does not: memory, file system and
processor are the machine's, and LocalStack's own packages stand behind the layers on the path.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from concurrent.futures import TimeoutError as TookTooLong
from pathlib import Path
from typing import Any, override

from localstack import config
from localstack.services.lambda_.invocation.lambda_models import (
    ArchiveCode,
    FunctionVersion,
    InvocationResult,
)
from localstack.services.lambda_.invocation.runtime_executor import (
    LambdaRuntimeException,
    RuntimeExecutor,
)

from plimsoll_localstack import settings
from plimsoll_localstack.runtimeapi import Answered, Call
from plimsoll_localstack.worker import Worker

LOOPBACK = "127.0.0.1"
CATCH_UP_SECONDS = 0.01
"""For the reader of a process's output, before it is cut into invocations."""


class ProcessExecutor(RuntimeExecutor):
    """One execution environment: a process, and another one in its place where that ended."""

    def __init__(self, id: str, function_version: FunctionVersion) -> None:  # noqa: A002 - LocalStack's signature
        super().__init__(id, function_version)
        self._environment: dict[str, str] = {}
        self._worker: Worker | None = None
        self._lock = threading.Lock()
        self._stopped = False

    @override
    def start(self, env_vars: dict[str, Any]) -> None:
        told = {name: str(value) for name, value in env_vars.items()}  # some come as numbers
        self._environment = settings.of_functions() | told
        try:
            self._running()
        except ConnectionError as error:
            _complain(f"{self._name} does not start: {error}")
            raise LambdaRuntimeException(str(error)) from error

    @override
    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()

    @override
    def invoke(self, payload: dict[str, str]) -> InvocationResult:
        seconds = float(self.function_version.config.timeout)
        call = Call(
            id=payload["invoke-id"],
            arn=payload["invoked-function-arn"],
            body=payload["payload"].encode(),
            trace=payload["trace-id"],
            seconds=seconds,
        )
        logs = ""
        try:
            worker = self._running()
            mark = worker.mark
            try:
                answer = worker.invoke(call)
            except TookTooLong:
                worker.end()  # the next invocation starts another
                answer = _error(
                    "Sandbox.Timedout",
                    f"RequestId: {call.id} Error: Task timed out after {seconds:.2f} seconds",
                )
                _complain(f"{self._name}: {answer.body.decode()}")
            time.sleep(CATCH_UP_SECONDS)
            logs = worker.output(mark)
        except ConnectionError as error:
            _complain(f"{self._name}: {error}")
            answer = _error("Runtime.ExitError", f"RequestId: {call.id} Error: {error}")
        return InvocationResult(
            request_id=call.id,
            payload=answer.body,
            is_error=answer.is_error,
            logs=logs
            or f"REPORT RequestId: {call.id}\n",  # LocalStack warns where there is nothing
        )

    @override
    def get_logs(self) -> str:
        return "" if self._worker is None else self._worker.output()

    @override
    def get_address(self) -> str:
        return LOOPBACK

    @override
    def get_endpoint_from_executor(self) -> str:
        return LOOPBACK

    @override
    def get_runtime_endpoint(self) -> str:
        return f"http://{LOOPBACK}:{config.GATEWAY_LISTEN[0].port}/_localstack_lambda/{self.id}"

    @classmethod
    @override
    def prepare_version(cls, function_version: FunctionVersion) -> None:
        for code in _archives(function_version):
            code.prepare_for_execution()

    @classmethod
    @override
    def cleanup_version(cls, function_version: FunctionVersion) -> None:
        code, *_ = _archives(function_version)  # layers may serve others yet
        code.destroy_cached()

    @property
    def _name(self) -> str:
        name: str = self.function_version.id.function_name
        return name

    def _running(self) -> Worker:
        """Return the process; a new one where there is none, or where it died."""
        with self._lock:
            if self._stopped:
                raise ConnectionError("this execution environment was stopped")
            if self._worker is not None and self._worker.alive:
                return self._worker
            if self._worker is not None:
                self._worker.end()
                self._worker = None
            archives = _archives(self.function_version)
            code, *layers = [archive.get_unzipped_code_location() for archive in archives]
            self._worker = Worker(
                self.function_version.config.handler or "",
                place=str(Path(tempfile.gettempdir()) / self._name),
                code=code,
                layers=layers,
                environment=self._environment,
            )
            return self._worker


def _archives(version: FunctionVersion) -> list[ArchiveCode]:
    """Return a function's own archive, and then those of its layers."""
    parts = (version.config.code, *(layer.code for layer in version.config.layers))
    archives = [part for part in parts if part is not None]
    if len(archives) < len(parts):
        raise LambdaRuntimeException("only functions and layers that are archives can run here")
    return archives


def _error(kind: str, message: str) -> Answered:
    body = json.dumps({"errorType": kind, "errorMessage": message}).encode()
    return Answered(body=body, is_error=True)


def _complain(words: str) -> None:
    sys.stdout.write(f"plimsoll_localstack: {words}\n")
    sys.stdout.flush()
