"""Compiles the templates of the console into a wheel; all else of the build stands in pyproject.toml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import override

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent / "layers" / "console"))

from plimsoll_console.environment import COMPILED, compile_templates


class BuildWithTemplates(build_py):
    """The modules of the packages, and the compiled templates beside them."""

    @override
    def run(self) -> None:
        """Build; an editable installation reads the templates from source."""
        super().run()
        if not self.editable_mode:
            compile_templates(Path(self.build_lib) / "plimsoll_console" / COMPILED.name)


setup(cmdclass={"build_py": BuildWithTemplates})
