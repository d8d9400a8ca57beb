"""How long calls to AWS may take, and how often they are tried: apart from the clients, so that rigs need not import these."""

from __future__ import annotations

from typing import Final

CONNECT_SECONDS: Final = 2
READ_SECONDS: Final = 5
ATTEMPTS: Final = 3
"""The first request included."""
