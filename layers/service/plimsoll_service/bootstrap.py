"""Wires the service's use cases to AWS: of the layer the only module that names adapters."""

from __future__ import annotations
