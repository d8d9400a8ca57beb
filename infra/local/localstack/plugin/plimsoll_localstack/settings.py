"""What whoever starts LocalStack tells this plugin: the one reader of its environment."""

from __future__ import annotations

import os


def java() -> str:
    """Return the program that runs DynamoDB Local."""
    return os.environ["PLIMSOLL_JAVA"]  # noqa: TID251 - the one reader here


def dynamodb_local() -> str:
    """Return the folder with DynamoDB Local and all that it needs."""
    return os.environ["PLIMSOLL_DYNAMODB_LOCAL"]  # noqa: TID251 - the one reader here


def of_functions() -> dict[str, str]:
    """Return what functions get of LocalStack's own environment.

    The services that LocalStack has not are at endpoints of their own, in botocore's spelling.
    """
    return {
        name: value
        for name, value in os.environ.items()  # noqa: TID251 - the one reader here
        if name in {"PATH", "HOME", "TMPDIR", "LANG"} or name.startswith("AWS_ENDPOINT_URL_")
    } | {"AWS_EC2_METADATA_DISABLED": "true"}
