"""Label selectors as kubectl takes them on its command line."""

from __future__ import annotations

import re
from typing import Final

from plimsoll.domain.errors import BadInput
from plimsoll.domain.pods import Requirement, Selector

_TERM: Final = re.compile(
    r"\s*(?:(?P<absent>!)\s*)?(?P<key>[\w./-]+)\s*"
    r"(?:(?P<sign>==?|!=)\s*(?P<value>[\w.-]*)|(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?\s*"
)


def parse_labels(text: str) -> Selector:
    """Read a label selector as kubectl takes it: `a=b,c!=d,e in (x,y),!f`.

    Raises:
        BadInput: it is none.
    """
    requirements = []
    for term in re.split(r",(?![^()]*\))", text):
        found = _TERM.fullmatch(term)
        if found is None or (found["absent"] and (found["sign"] or found["set"])):
            raise BadInput(f"--selector: {term!r} is no label selector; write for example app=web")
        values: tuple[str, ...] = ()
        if found["sign"]:
            operator, values = ("NotIn" if found["sign"] == "!=" else "In"), (found["value"],)
        elif found["set"]:
            operator = "In" if found["set"] == "in" else "NotIn"
            values = tuple(value.strip() for value in found["values"].split(","))
        else:
            operator = "DoesNotExist" if found["absent"] else "Exists"
        requirements.append(Requirement(key=found["key"], operator=operator, values=values))
    return Selector(requirements=tuple(requirements))
