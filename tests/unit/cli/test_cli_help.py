"""How `plimsoll` presents itself: sections, one line for each command, completion, and formats of output."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from plimsoll_cli import COMMANDS, REMOVED, SECTIONS, main
from tests.support.cli_environment import an_environment, run

PRINTS_DATA = {
    "clusters list",
    "controlplane status",
    "doctor",
    "gpu geometry",
    "drain",
    "gpu audit",
    "gpu fit",
    "guard status",
    "history",
    "instructions list",
    "jobs",
    "jobs why",
    "plan",
    "queues history",
    "queues plan",
    "queues why",
    "recommendations",
    "recommendations savings",
    "rehearse",
    "reports",
    "reports pools",
    "reports promises",
    "reports show",
    "savings",
    "status",
    "tenants audit",
    "tenants people",
}


def typed(*words: str, **options: Any) -> Result:
    return CliRunner().invoke(main, words, **options)


def commands(context: click.Context, *path: str) -> Iterator[tuple[str, click.Command]]:
    group = context.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from commands(click.Context(command, parent=context), *path, name)


ALL = dict(commands(click.Context(main)))


def test_alone_it_shows_the_three_commands_to_begin_with():
    shown = typed()
    assert shown.exit_code == 0
    named = re.findall(r"^  plimsoll ([a-z-]+)", shown.stdout, re.MULTILINE)
    assert len(named) == 3
    assert set(named) <= set(COMMANDS)


def test_at_most_26_commands_stand_at_the_top():
    assert len(COMMANDS) <= 26


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_command_answers_with_the_one_that_replaces_it(name: str):
    result = typed(name, "--help")
    assert result.exit_code == 2
    assert result.stderr == f"Error: `plimsoll {name}` is now `plimsoll {REMOVED[name]}`\n"
    assert typed(*REMOVED[name].split(), "--help").exit_code == 0


@pytest.mark.parametrize(
    "words",
    [
        "jobs --context harbor cancel lab/train",
        "plan --cluster harbor snippet shop/web",
        "reports --stack lab pools",
    ],
)
def test_an_option_before_a_subcommand_is_refused_and_not_ignored(words: str):
    _, option, _, subcommand, *_ = words.split()
    result = typed(*words.split())
    assert result.exit_code == 2
    assert f"give {option} after {subcommand}" in result.stderr


def test_help_lists_every_command_in_its_section_on_one_line_of_80_columns():
    shown = typed("--help", terminal_width=80).stdout
    at = -1
    for section, entries in SECTIONS.items():
        at = shown.index(f"\n{section}:\n", at + 1)
        for name, entry in entries.items():
            assert re.search(rf"^  {name} +{re.escape(entry.help)}$", shown[at:], re.MULTILINE)
    assert max(map(len, shown.splitlines())) <= 80


def test_help_imports_no_command():
    code = (
        "import sys; from plimsoll_cli import main; main(['--help'], standalone_mode=False); "
        "sys.exit([m for m in sys.modules if m.startswith('plimsoll_cli.') and m != 'plimsoll_cli.terminal'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"


SHARED = {
    # several commands about one subject -> their module
    "service.advice": {"login", "logout", "savings", "history"},
    "service.decisions": {"recommendations"},
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_in_the_module_of_its_name_or_of_its_subject(name: str):
    module = COMMANDS[name].place.partition(":")[0]
    assert module.rpartition(".")[2] == name.replace("-", "_") or name in SHARED[module]


@pytest.mark.parametrize("name", ALL)
def test_every_command_and_option_has_its_help(name: str):
    assert ALL[name].get_short_help_str()
    for parameter in ALL[name].params:
        assert not isinstance(parameter, click.Option) or parameter.help, parameter.name


def test_output_is_the_same_option_everywhere():
    having = {
        name: parameter
        for name, command in ALL.items()
        for parameter in command.params
        if "--output" in parameter.opts
    }
    metrics = having.pop("queues list").type
    assert set(having) == PRINTS_DATA
    (common,) = {tuple(p.type.choices) for p in having.values() if isinstance(p.type, click.Choice)}
    assert isinstance(metrics, click.Choice)
    assert tuple(metrics.choices) == (*common, "prometheus")
    assert len({str(p.to_info_dict()) for p in having.values()}) == 1


def test_yaml_holds_the_same_as_json():
    environment, _ = an_environment()
    as_json = run(environment, "status", "--output", "json").stdout
    as_yaml = run(environment, "status", "-o", "yaml").stdout
    assert yaml.safe_load(as_yaml) is not None
    assert json.loads(json.dumps(yaml.safe_load(as_yaml))) == json.loads(as_json)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_that_asks_for_the_program(shell: str):
    script = typed("completion", shell)
    assert script.exit_code == 0
    assert f"_PLIMSOLL_COMPLETE={shell}_complete" in script.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "plimsoll re",
            ["plain,rehearse", "plain,reports", "plain,recommendations"],
        ),
        ("plimsoll reports sh", ["plain,show"]),
        ("plimsoll status --output y", ["plain,yaml"]),
    ],
)
def test_completes_commands_options_and_values(words: str, expected: list[str]):
    asked = {
        "_PLIMSOLL_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    shown = typed(env=asked, prog_name="plimsoll")
    assert shown.stdout.split() == expected
