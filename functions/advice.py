"""SQS `advice` -> what one cluster could save, and instructions of what was accepted there.

A request that fails comes back once, and then lies in the dead-letter queue, which tells of which cluster it
was; the schedule asks again within five minutes.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions import sqs_batch
from plimsoll.observability import logger, metrics
from plimsoll_service import bootstrap
from plimsoll_service.adapters.queues import parsed
from plimsoll_service.domain.advice import AdviceRequest
from plimsoll_service.domain.metrics import ServiceMetric


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's own signature
    """Answer each request, and name those that must come back."""
    return sqs_batch.each(event, _answer, "advice failed")


def _answer(record: dict[str, Any]) -> None:
    request = parsed(record["body"], AdviceRequest)
    if bootstrap.advice().is_silent(request):
        logger.warning("agent silent", extra={"cluster": request.cluster})
        metrics.add_metric(ServiceMetric.AGENTS_SILENT, "Count", 1)
    advised = bootstrap.advice().answer(request)
    if advised is None:
        logger.info("nothing to advise", extra={"cluster": request.cluster})
        return
    if advised.unreached or advised.killed:
        logger.warning(
            "advice took too long",
            extra={
                "cluster": request.cluster,
                "unreached": advised.unreached,
                "killed": advised.killed,
            },
        )
    logger.info(
        "cluster advised",
        extra={
            "cluster": request.cluster,
            "found": advised.found,
            "changed": advised.changed,
            "instructions": advised.instructions,
        },
    )
