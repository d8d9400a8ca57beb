"""The agent: reads one cluster for the optimisation service, and carries out what its owner allows."""

from __future__ import annotations
