"""What the agent says: a line is repeated only after many others, and the memory of lines has an end."""

from __future__ import annotations

from plimsoll_agent.output import MOST_SAID, Output
from tests.support.cli_environment import StillClock


def test_a_line_is_said_once(capsys):
    output = Output(StillClock())
    for _ in range(3):
        output.once("left out: Pod shop/web")
    assert capsys.readouterr().out.count("Pod shop/web") == 1


def test_of_endless_lines_only_the_last_are_remembered(capsys):
    output = Output(StillClock())
    for number in range(MOST_SAID + 1):
        output.once(f"line {number}")
    assert len(output._said) == MOST_SAID
    capsys.readouterr()
    output.once(f"line {MOST_SAID}")
    output.once("line 1")
    assert capsys.readouterr().out == ""
    output.once("line 0")
    assert "line 0" in capsys.readouterr().out
