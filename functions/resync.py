"""SQS `resyncs` -> the resync of one cluster, its pre-flight, or the zonal shifts of its account and region.

A resync that fails is not tried again: the next one is a minute away. One that dies, or meets a bug,
leaves its message to the dead-letter queue, which says of which cluster it was.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions import sqs_batch
from plimsoll import bootstrap
from plimsoll.domain.registry import ResyncRequest
from plimsoll.observability import logger, metrics

bootstrap.make_ready(lambda services: services.resync)


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's own signature
    """Run what each message asks for, and name those that met a bug."""
    return sqs_batch.each(event, _run, "resync failed")


def _run(record: dict[str, Any]) -> None:
    request, services = ResyncRequest.read(record["body"]), bootstrap.services()
    if request.place is not None:
        services.zonal_shifts.run(request)
    else:
        (services.preflight if request.preflight else services.resync).run(request)
