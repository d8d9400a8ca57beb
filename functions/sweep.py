"""SQS `resyncs` -> the resync of one cluster, its pre-flight, or the zonal shifts of its account and region.

A resync that fails is not tried again: the next one is a minute away. One that dies, or meets a bug,
leaves its message to the dead-letter queue, which says of which cluster it was.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plimsoll import bootstrap
from plimsoll.domain.registry import ResyncRequest
from plimsoll.observability import logger, metrics

bootstrap.make_ready()


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's own signature
    """Run what each message asks for, and name those that met a bug.

    Such a message is no error of the function: Lambda slows a queue down after errors, and the other
    clusters' messages are in it too.
    """
    failed = []
    for record in event["Records"]:
        try:
            request = ResyncRequest.read(record["body"])
            if request.place is not None:
                bootstrap.zonal_shifts().run(request)
            else:
                (bootstrap.preflight() if request.preflight else bootstrap.resync()).run(request)
        except Exception:  # noqa: BLE001 - whatever it is, it is this cluster's alone
            logger.exception("resync failed", extra={"sqs_message": record["messageId"]})
            failed.append(record)
    return {"batchItemFailures": [{"itemIdentifier": r["messageId"]} for r in failed]}
