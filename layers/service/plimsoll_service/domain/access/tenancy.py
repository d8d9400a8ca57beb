"""What one tenant's data is reached by: keys that begin with the tenant, and rights to no others.

The functions hold no right to tenants' data themselves. For each tenant they assume a role under a
policy of this module, and AWS grants no more than both allow. A mistake in a key is then an error,
and not somebody else's data.
https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies.html#policies_session
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Final

from plimsoll_service.domain.access.principals import checked_name
from plimsoll_service.domain.snapshots import Span

DOCUMENT_DAYS: Final = tuple(sorted(span.kept.days + 1 for span in Span))
"""After how many days the bucket deletes documents that expire: `service.yaml` has a rule for each."""
_SNAPSHOTS: Final = "snapshots"
_DOCUMENTS: Final = (*(f"documents/{days}-days" for days in DOCUMENT_DAYS), "documents/kept")
"""Rules of a bucket go by how keys begin, so how long an object is needed stands before whose it is."""


def leading_key(tenant: str, cluster: str) -> str:
    """Return the partition of a cluster; of what is the tenant's as a whole, `cluster` is empty."""
    return f"{checked_name(tenant, 'a tenant')}#{cluster}"


def snapshot_key(tenant: str, cluster: str, epoch: str, sequence: int) -> str:
    """Return where a snapshot lies in the bucket."""
    name = checked_name(tenant, "a tenant")
    return f"{_SNAPSHOTS}/{name}/{cluster}/{epoch}/{sequence}.json.gz"


def document_key(tenant: str, cluster: str, name: str, needed: timedelta | None) -> str:
    """Return where a document lies in the bucket that is too large for the table.

    Args:
        tenant: Whose it is.
        cluster: Which cluster it is about.
        name: Different for each version of each document.
        needed: How long it is read from now on; None: for ever.
    """
    days = zip(DOCUMENT_DAYS, _DOCUMENTS, strict=False)
    fits = (prefix for d, prefix in days if needed is not None and needed <= timedelta(days=d))
    prefix = next(fits, _DOCUMENTS[-1])
    return f"{prefix}/{checked_name(tenant, 'a tenant')}/{cluster}/{name}"


def object_prefixes(tenant: str) -> tuple[str, ...]:
    """Return how the keys of a tenant's objects begin in the bucket."""
    name = checked_name(tenant, "a tenant")
    return tuple(f"{prefix}/{name}/" for prefix in (_SNAPSHOTS, *_DOCUMENTS))


def session_policy(tenant: str, *, table: str, audit: str, bucket: str) -> str:
    """Return the policy of a session that works for one tenant.

    Args:
        tenant: Whose data.
        table: ARN of the table with the documents of all tenants.
        audit: ARN of the table with the audit rows of all tenants, which are only added.
        bucket: ARN of the bucket with the snapshots of all tenants.
    """
    name = checked_name(tenant, "a tenant")
    statements: list[dict[str, Any]] = [
        {
            "Effect": "Allow",
            # No Scan: a scan has no leading key, and what is absent fulfils ForAllValues.
            "Action": [
                f"dynamodb:{action}" for action in ("GetItem", "PutItem", "DeleteItem", "Query")
            ],
            "Resource": table,
            "Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": f"{name}#*"}},
        },
        {
            "Effect": "Allow",
            "Action": ["dynamodb:PutItem", "dynamodb:Query"],
            "Resource": audit,
            "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": name}},
        },
        {
            "Effect": "Allow",
            "Action": ["s3:GetObject", "s3:PutObject"],
            "Resource": [f"{bucket}/{prefix}*" for prefix in object_prefixes(tenant)],
        },
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))
