"""DynamoDB Local as Maven Central has it, started as LocalStack starts its own copy.

The process stays in LocalStack's process group, unlike what LocalStack starts itself: whoever ends
that group ends the database too.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from localstack.utils.run import FuncThread

from plimsoll_localstack import settings

if TYPE_CHECKING:
    from localstack.services.dynamodb.server import DynamodbServer

MAIN = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
HEAP = "-Xmx256m"
STOP_SECONDS = 5.0


class Database(FuncThread):
    """One DynamoDB Local, as the thread that LocalStack's server wants to hold."""

    def __init__(self, port: int) -> None:
        library = settings.dynamodb_local()
        self._command = [
            *(settings.java(), HEAP, f"-Djava.library.path={library}", "-cp", f"{library}/*"),
            *(MAIN, "-port", str(port), "-inMemory"),
        ]
        self.process: subprocess.Popen[bytes] | None = None
        super().__init__(self._hold, name="dynamodb-local")

    def _hold(self, *_: Any) -> int:
        # DDB_LOCAL_TELEMETRY=0 is the documented switch: nothing is to be told to anybody.
        environment = {**settings.of_functions(), "DDB_LOCAL_TELEMETRY": "0"}
        self.process = subprocess.Popen(self._command, env=environment)  # noqa: S603 - our own
        return self.process.wait()

    def stop(self, quiet: bool = False) -> None:  # noqa: FBT001, FBT002 - LocalStack's signature
        """End the process, and with it the thread."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        super().stop(quiet)


def start(server: DynamodbServer) -> Database:
    """Start the database at a server's port, in memory; this takes the place of its own method."""
    thread = Database(server.port)
    thread.start()
    return thread
