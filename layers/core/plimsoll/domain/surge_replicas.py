"""The note on a workload that says what was changed for a while, and what to restore.

It holds absolute values and is written in the same patch as the change, so whoever reads it later
knows how to put things back, however often the change was tried and whoever died in between.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Self

from plimsoll.domain.errors import BadInput

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SurgeReplicas:
    """A raised replica count."""

    restore: int
    """What its owner declared."""
    set_to: int
    """What we set. When the object says otherwise, somebody else has spoken since, and wins."""

    def to_record(self) -> str:
        """Return the annotation's text."""
        return json.dumps(
            {"v": VERSION, "replicas": {"restore": self.restore, "set": self.set_to}},
            separators=(",", ":"),
        )

    @classmethod
    def from_record(cls, text: str) -> Self:
        """Read the annotation's text.

        Raises:
            BadInput: a person, or a newer version, wrote it: leave the workload alone.
        """
        try:
            record = json.loads(text)
            if record["v"] != VERSION:
                raise BadInput(f"temporary change of version {record['v']}, this is {VERSION}")
            restore, set_to = record["replicas"]["restore"], record["replicas"]["set"]
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"temporary change {text[:80]!r} cannot be read") from error
        if not (isinstance(restore, int) and isinstance(set_to, int) and 0 <= restore <= set_to):
            raise BadInput(f"temporary change {text[:80]!r} makes no sense")
        return cls(restore=restore, set_to=set_to)
