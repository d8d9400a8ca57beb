"""Reports of interruptions, merged under an optimistic version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.dynamodb.codec import (
    begun_score,
    item_to_report,
    item_to_score,
    report_to_item,
    score_key,
    score_to_item,
    strings,
    version_of,
)
from plimsoll.adapters.dynamodb.tables import Warn, logged, merged, put_version, readable
from plimsoll.domain.reports import Report, Score

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws

ATTEMPTS: Final = 5
"""Reconciles that merge into one report at the same time are two or three at most."""


class DynamoReports:
    """The table `reports`."""

    def __init__(self, aws: Aws, table: str, warn: Warn = logged) -> None:
        self._aws = aws
        self._table = table
        self._warn = warn

    def merge(self, report: Report) -> Report:
        """Merge into what is stored under the same interruption, and return the result.

        Raises:
            Conflict: others wrote in between, five times in a row.
        """
        return merged(ATTEMPTS, partial(self._merge_once, report))

    def list(self, cluster: str, limit: int = 50) -> Sequence[Report]:
        """Return the newest reports of a cluster, newest first.

        What was merged within the last second may be missing: the index follows the table.
        """
        with translated(f"list the reports of cluster {cluster}"):
            pages = self._aws.dynamodb.get_paginator("query").paginate(
                TableName=self._table,
                IndexName="newest",
                KeyConditionExpression="#cluster = :cluster",
                ExpressionAttributeNames={"#cluster": "cluster"},
                ExpressionAttributeValues=strings(**{":cluster": cluster}),
                ScanIndexForward=False,
                # Without a size a page is a megabyte, which is read and paid for whole.
                PaginationConfig={"MaxItems": limit, "PageSize": limit},
            )
            items = [item for page in pages for item in page["Items"]]
        found = (self._report(item) for item in items)
        return [report for report in found if report is not None]

    def scores(self, cluster: str, months: Sequence[str]) -> Sequence[Score]:
        """Return the scores that are kept of a cluster for these months, in the same order."""
        found = []
        for month in months:
            what = f"the score of {cluster} in {month}"
            with translated(f"read {what}"):
                answer = self._aws.dynamodb.get_item(
                    TableName=self._table, Key=score_key(cluster, month), ConsistentRead=True
                )
            if (item := answer.get("Item")) is not None:
                read = readable(item_to_score, item, what, self._warn)
                # One that cannot be read begins anew, under its own version: otherwise it would keep out the next.
                found.append(read or begun_score(cluster, month, version_of(item)))
        return found

    def put_score(self, score: Score) -> None:
        """Write a score under the version that it has.

        Raises:
            Conflict: somebody else wrote in between.
        """
        what = f"write the score of {score.cluster} in {score.month}"
        put_version(self._aws, self._table, score_to_item(score), score.version, what)

    def _report(self, item: Mapping[str, Any]) -> Report | None:
        return readable(item_to_report, item, f"the report {item.get('interruption')}", self._warn)

    def _merge_once(self, report: Report) -> Report:
        what = f"merge the report of {report.interruption}"
        with translated(what):
            answer = self._aws.dynamodb.get_item(
                TableName=self._table,
                Key=strings(interruption=report.interruption),
                ConsistentRead=True,
            )
        # A row that cannot be read is overwritten under its own version: otherwise it would keep out all news.
        item = answer.get("Item")
        known = None if item is None else self._report(item)
        result = report if known is None else known.merged(report)
        made = report_to_item(result, None if known is None else item)
        put_version(self._aws, self._table, made, version_of(item), what)
        return result
