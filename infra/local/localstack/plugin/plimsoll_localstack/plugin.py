"""What LocalStack finds by the entry points of this distribution. Imports wait until they are needed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from localstack.runtime import hooks
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin

if TYPE_CHECKING:
    from plimsoll_localstack.executor import ProcessExecutor


class ProcessExecutorPlugin(RuntimeExecutorPlugin):
    """Runs functions as processes beside LocalStack."""

    name = "process"

    def load(self, *_: Any, **__: Any) -> type[ProcessExecutor]:
        """Return the executor."""
        from plimsoll_localstack.executor import ProcessExecutor  # noqa: PLC0415 - see above

        return ProcessExecutor


@hooks.on_infra_start()
def own_dynamodb() -> None:
    """Let LocalStack's DynamoDB start ours; its own comes from the internet at the first call."""
    from localstack.services.dynamodb.server import DynamodbServer  # noqa: PLC0415 - see above

    from plimsoll_localstack.database import start  # noqa: PLC0415 - see above

    DynamodbServer.do_start_thread = start


@hooks.on_infra_start()
def loopback_only() -> None:
    """Let LocalStack listen where GATEWAY_LISTEN says: 4.14 reads the port of it, and no address."""
    from localstack import config  # noqa: PLC0415 - see above
    from twisted.internet import endpoints  # noqa: PLC0415 - see above

    endpoints.TCP4ServerEndpoint = partial(
        endpoints.TCP4ServerEndpoint, interface=config.GATEWAY_LISTEN[0].host
    )
