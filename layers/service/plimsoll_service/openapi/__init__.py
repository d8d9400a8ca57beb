"""The description of the API in OpenAPI 3.1, made of the types that go over the wire."""

from __future__ import annotations

from plimsoll_service.openapi.description import OPERATIONS, document
from plimsoll_service.openapi.operation import Operation

__all__ = ["OPERATIONS", "Operation", "document"]
