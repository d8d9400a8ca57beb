"""The colours of all pages, as CSS variables: one source for the console, its exports and the page of a drill."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def tokens() -> str:
    """Return the style that defines them, for light and for dark."""
    return Path(__file__).with_name("static").joinpath("tokens.css").read_text(encoding="utf-8")
