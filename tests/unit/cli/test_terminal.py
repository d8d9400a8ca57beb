"""Text that others wrote, on the terminal of whoever runs a command: none of it is obeyed."""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from rich.live import Live
from rich.text import Text

import plimsoll_cli
from plimsoll.domain.errors import BadInput
from plimsoll_cli import main
from plimsoll_cli.options import Terminal, console, print_answer, table
from plimsoll_cli.terminal import printable, say
from plimsoll_service.wire.advice import Recommendation, RecommendationPage
from tests.support.advised import AdvisedCluster, harbor
from tests.support.cli_environment import MemoryEnvironment, run

CLIPBOARD = "pv-1\x1b]52;c;Y3VybA==\x07"
"""Sets the clipboard of many a terminal."""
TURNED = "pod\u202egnp"
ROOT = Path(plimsoll_cli.__file__).parent
PRINTERS = {"click.echo", "click.secho", "click.confirm", "click.prompt", "Console", "print"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (CLIPBOARD, "pv-1]52;c;Y3VybA=="),
        ("\x9b31mred", "31mred"),
        ("a\r\nb\tc", "a\nb\tc"),
        (TURNED, "podgnp"),
        ("a\u2028b\x7f\x00\ud800", "ab"),
        ("Größe 日本 …", "Größe 日本 …"),
    ],
)
def test_control_characters_are_stripped_and_words_stay(text, shown):
    assert printable(text) == shown
    assert printable(shown) == shown


def printed(module: ast.Module) -> Iterator[str]:
    for call in (each for each in ast.walk(module) if isinstance(each, ast.Call)):
        name = ast.unparse(call.func)
        if name in PRINTERS or name.endswith((".stdout.write", ".stderr.write")):
            yield name


def test_no_command_prints_past_the_one_function():
    found = {
        (str(path.relative_to(ROOT)), name)
        for path in ROOT.rglob("*.py")
        for name in printed(ast.parse(path.read_text()))
    }
    assert found == {
        ("terminal.py", "click.echo"),
        ("terminal.py", "click.confirm"),
        ("service/advice.py", "click.prompt"),  # a text of ours
        ("options.py", "click.echo"),  # JSON and YAML
        ("references/__main__.py", "sys.stdout.write"),  # no command
    }


class Api:
    """A service in the hands of an attacker, or with rows that an older version kept."""

    def __init__(self) -> None:
        cluster = AdvisedCluster()
        cluster.advise(harbor())
        first = next(iter(cluster.all().values()))
        self.hostile = replace(
            first, id="r-1", reason=CLIPBOARD, note=TURNED, patch=f"kubectl {CLIPBOARD}"
        )

    def call(self, method: str, path: str, kind: type[Any], **_: Any) -> Any:
        if kind is Recommendation:
            return self.hostile
        if kind is RecommendationPage:
            return RecommendationPage(
                items=(self.hostile,), counts={}, as_of=self.hostile.changed_at
            )
        raise BadInput(f"{method} {path}: {CLIPBOARD}")


@pytest.fixture
def _hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api()
    monkeypatch.setattr("plimsoll_cli.service.advice.logged_in", lambda *_: api)
    monkeypatch.setattr("plimsoll_cli.service.advice.cluster_path", lambda *_: "/v1/clusters/x")


@pytest.mark.usefixtures("_hostile")
@pytest.mark.parametrize(
    "args",
    [
        ["recommendations"],
        ["recommendations", "accept", "r-1"],
        ["savings"],
        ["recommendations", "accept", CLIPBOARD],
        ["drain", "--wrong", CLIPBOARD],
    ],
    ids=["table", "line", "error", "argument", "usage"],
)
def test_neither_tables_nor_lines_nor_errors_hold_an_escape_sequence(args):
    found = run(MemoryEnvironment(), *args)
    assert "]52;c;Y3VybA==" in found.output.replace("\n", "") or args[0] == "drain"
    assert printable(found.output) == found.output


@pytest.mark.usefixtures("_hostile")
def test_json_is_whole_and_escaped():
    found = run(MemoryEnvironment(), "recommendations", "-o", "json")
    assert json.loads(found.output)["recommendations"][0]["reason"] == CLIPBOARD
    assert "\x1b" not in found.output


def test_styles_of_our_own_reach_a_terminal_and_sequences_of_others_do_not():
    out = io.StringIO()
    terminal = Terminal(file=out, force_terminal=True, color_system="standard", width=80)
    shown = table("NAME")
    shown.add_row(CLIPBOARD)
    with Live(console=terminal, refresh_per_second=1) as live:
        live.update(shown)
    terminal.print(Text(CLIPBOARD, style="bold red"))
    assert "\x1b]52" not in out.getvalue()
    assert "\x1b[1;31mpv-1]52;c;Y3VybA==" in out.getvalue()


def test_a_table_of_such_names_stands_straight(capsys):
    shown = table("NAME", "NEXT")
    shown.add_row(CLIPBOARD, "!")
    shown.add_row("pv-1]52;c;Y3VybA==", "?")
    console().print(shown)
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.index("!") == second.index("?")


def test_lines_and_answers_go_where_they_did(capsys):
    say("a", nl=False)
    say("b", err=True)
    print_answer({"a": CLIPBOARD}, "yaml")
    said = capsys.readouterr()
    assert said.err == "b\n"
    assert said.out.startswith("a")
    assert "\x1b" not in said.out


def test_help_is_printed_still():
    assert "Examples:" in CliRunner().invoke(main, ["recommendations", "--help"]).output
