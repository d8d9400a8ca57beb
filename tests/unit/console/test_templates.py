"""The templates of the console: compiled by a build they show what they show from source."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll_console import environment, rendering
from plimsoll_console.environment import TEMPLATES, compile_templates
from plimsoll_console.pages import Request
from plimsoll_console.rendering import Place, rendered
from plimsoll_console.routes import ROUTES
from tests.unit.console.test_screens import hostile_source

NAME = "<b>harbor</b>"


@pytest.fixture
def _anew():
    rendering._environment.cache_clear()
    yield
    rendering._environment.cache_clear()


def screens() -> list[str]:
    """Return every screen of a cluster in a storm, as HTML."""
    source = hostile_source(NAME)
    named = {"cluster": NAME, "kind": "Deployment", "namespace": "default", "name": NAME}
    request = Request(named={**named, "interruption": NAME, "number": "1"})
    pages = [(each.path, each.view(request, source)) for each in ROUTES if each.method == "GET"]
    return [rendered(page, Place(path=path), source) for path, page in pages]


@pytest.mark.usefixtures("_anew")
def test_compiled_templates_show_what_their_source_shows(tmp_path, monkeypatch):
    from_source = screens()
    rendering._environment.cache_clear()
    compile_templates(tmp_path / "compiled")
    monkeypatch.setattr(environment, "COMPILED", tmp_path / "compiled")
    monkeypatch.setattr(environment, "TEMPLATES", tmp_path / "none")
    assert screens() == from_source


def test_every_template_is_compiled(tmp_path):
    compile_templates(tmp_path)
    assert len(list(tmp_path.iterdir())) == len(list(TEMPLATES.rglob("*.j2")))


def test_a_build_makes_the_same_bytes_without_the_core(tmp_path: Path):
    folders = [tmp_path / seed for seed in "12"]
    for folder in folders:
        subprocess.run(
            [sys.executable, "-S", "-m", "plimsoll_console.environment", folder],
            env={
                "PYTHONHASHSEED": folder.name,
                "PYTHONPATH": os.pathsep.join(
                    [str(TEMPLATES.parents[1]), *(each for each in sys.path if "site-" in each)]
                ),
            },
            check=True,
        )
    one, other = ({each.name: each.read_bytes() for each in f.iterdir()} for f in folders)
    assert one == other
