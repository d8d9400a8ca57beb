"""Tells the queue `seen` what happened to it, and fails where its message says so."""

from __future__ import annotations

import json
import os
import sys
import time

import boto3
from botocore.exceptions import ClientError


def handler(event, context):
    """Answer a batch."""
    sqs = boto3.client("sqs")

    def tell(**seen):
        sqs.send_message(
            QueueUrl=os.environ["SEEN"], MessageBody=json.dumps({"at": time.time(), **seen})
        )

    failures = []
    for record in event["Records"]:
        body = json.loads(record["body"])
        attempts = int(record["attributes"]["ApproximateReceiveCount"])
        order = body.get("order")
        if order == "describe yourself":
            tell(
                order=order,
                endpoints={k: v for k, v in os.environ.items() if k.startswith("AWS_ENDPOINT_URL")},
                interpreter=sys.executable,
                region=os.environ["AWS_REGION"],
            )
        elif order == "overreach":
            try:
                boto3.client("dynamodb").list_tables()
            except ClientError as error:
                tell(denied=error.response["Error"]["Code"])
        else:
            stamps = {
                name: int(record["attributes"][attribute]) / 1000
                for name, attribute in (
                    ("sent", "SentTimestamp"),
                    ("received", "ApproximateFirstReceiveTimestamp"),
                )
            }
            tell(body=body, attempts=attempts, **stamps)
        if order == "oversleep":
            time.sleep(60)
        if order == "come back soon" and attempts == 1:
            sqs.change_message_visibility(
                QueueUrl=os.environ["WORK"],
                ReceiptHandle=record["receiptHandle"],
                VisibilityTimeout=1,
            )
        if order in {"fail", "come back soon"} and (order == "fail" or attempts == 1):
            failures.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failures}
