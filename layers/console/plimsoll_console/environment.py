"""The templates as Jinja2 reads them: from source in a checkout, compiled in a wheel and in Lambda.

A build runs `python -m plimsoll_console.environment FOLDER`, which compiles them: to parse them takes the first page
of a process ten times as long as to load what was compiled. Nothing here imports the core, which a build has not got.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Final

from jinja2 import BaseLoader, Environment, FileSystemLoader, ModuleLoader, StrictUndefined

TEMPLATES: Final = Path(__file__).with_name("templates")
COMPILED: Final = Path(__file__).with_name("compiled")
"""Where a build puts the compiled templates; a checkout has none."""


def environment() -> Environment:
    """Return the environment of the templates: escaping, and strict about names."""
    return _reading(ModuleLoader(COMPILED) if COMPILED.is_dir() else FileSystemLoader(TEMPLATES))


def compile_templates(target: Path) -> None:
    """Compile every template into a folder, as Python modules.

    Raises:
        jinja2.TemplateSyntaxError: a template is wrong.
    """
    _reading(FileSystemLoader(TEMPLATES)).compile_templates(target, zip=None, ignore_errors=False)


def _reading(loader: BaseLoader) -> Environment:
    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["sentence"] = sentence
    made.filters["shell"] = shlex.quote
    return made


def sentence(text: str) -> str:
    """Return words as a sentence."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


if __name__ == "__main__":
    compile_templates(Path(sys.argv[1]))
