"""The optimisation service: takes agents' snapshots, says what clusters could save, signs instructions.

`wire` is what agents and service say to each other. The interruption path imports nothing of it.
"""

from __future__ import annotations
