"""What a deployment of the service decides: the one place that knows its environment variables.

Every field is required and is the variable of the same name in capitals; a test compares the fields
with `service.yaml`.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.config import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Settings):
    """One stack's settings."""

    aws_region: str
    """Lambda sets it."""
    members_table: str
    """DynamoDB: who was invited, and who was let in."""
    people_table: str
    """DynamoDB: bindings of groups, sessions and API tokens."""
    documents_table: str
    """DynamoDB: the documents of all tenants, each under its tenant's key."""
    documents_table_arn: str
    audit_table: str
    """DynamoDB: the audit rows of all tenants, each under its tenant's key."""
    audit_table_arn: str
    snapshots_bucket: str
    """S3: the snapshots of all tenants, each under its tenant's prefix."""
    snapshots_bucket_arn: str
    arrivals_queue: str
    """URL."""
    arrivals_dead_queue: str
    """URL; arrivals that no further attempt can help lie here with their reasons."""
    advice_queue: str
    """URL."""
    tenant_role: str
    """ARN of the role that reaches tenants' data, assumed for one tenant at a time."""
    token_secret: str
    """ARN of the secret that signs access tokens."""
    instruction_key: str
    """The KMS key that signs instructions: its ARN."""
    former_instruction_key: str
    """The one that signed before it, which agents may have pinned; empty: none."""
    oidc_issuer: str
    """Where people sign in; empty: by keys alone."""
    oidc_client_id: str
    oidc_client_secret: str
    """ARN of its secret; empty: a public client."""
    oidc_scopes: str
    oidc_groups_claim: str
    console_url: str
    """Address of the hosted console; empty: nobody signs in to it."""
    interruption_tables: str
    """Of an interruption stack: clusters, frames and reports, separated by commas; empty: none."""
    interruption_role: str
    """ARN of the role that reads them and nothing else; empty as they are."""
