"""What the checks ask of an installation."""

from __future__ import annotations

import pytest

from plimsoll.domain.errors import Refused
from plimsoll_cli.doctor.installation import once


def test_a_question_of_several_checks_is_put_once_and_its_error_meets_each_of_them():
    questions: list[str] = []

    def ask() -> str:
        questions.append("list nodes")
        raise Refused("you may not list nodes")

    nodes = once(ask)
    for _ in range(2):
        with pytest.raises(Refused, match="list nodes"):
            nodes()
    assert questions == ["list nodes"]
