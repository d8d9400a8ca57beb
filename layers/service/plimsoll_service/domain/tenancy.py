"""What one tenant's data is reached by: keys that begin with the tenant, and rights to no others.

The functions hold no right to tenants' data themselves. For each tenant they assume a role under a
policy of this module, and AWS grants no more than both allow. A mistake in a key is then an error,
and not somebody else's data.
https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies.html#policies_session
"""

from __future__ import annotations

import json
from typing import Any

from plimsoll_service.domain.principals import checked_name


def leading_key(tenant: str, cluster: str) -> str:
    """Return the partition of a cluster; of what is the tenant's as a whole, `cluster` is empty."""
    return f"{checked_name(tenant, 'a tenant')}#{cluster}"


def snapshot_key(tenant: str, cluster: str, epoch: str, sequence: int) -> str:
    """Return where a snapshot lies in the bucket."""
    return f"{checked_name(tenant, 'a tenant')}/{cluster}/{epoch}/{sequence}.json.gz"


def session_policy(tenant: str, *, table: str, bucket: str) -> str:
    """Return the policy of a session that works for one tenant.

    Args:
        tenant: Whose data.
        table: ARN of the table with the documents of all tenants.
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
            "Action": ["s3:GetObject", "s3:PutObject"],
            "Resource": f"{bucket}/{name}/*",
        },
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))
