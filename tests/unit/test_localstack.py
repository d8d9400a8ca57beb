"""What LocalStack is started with: Java, found or named as missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plimsoll.domain.errors import Refused
from plimsoll_testbed.rigs.background import Background, Running
from plimsoll_testbed.rigs.localstack.__main__ import main
from plimsoll_testbed.rigs.localstack.java import java
from plimsoll_testbed.rigs.workbench import Workbench


def program(folder: Path, name: str, *lines: str) -> Path:
    file = folder / name
    file.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    file.chmod(0o755)
    return file


class TestJava:
    @pytest.mark.parametrize("version", ["17.0.15", "21.0.1", "25"])
    def test_a_java_that_is_new_enough_is_taken(self, tmp_path: Path, version: str):
        file = program(tmp_path, "java", f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")
        assert java(str(tmp_path)) == str(file)

    @pytest.mark.parametrize(
        ("version", "said"), [("1.8.0_402", "says 8"), ("11.0.2", "says 11"), ("?", "no version")]
    )
    def test_an_old_one_is_refused_with_the_cure(self, tmp_path: Path, version: str, said: str):
        program(tmp_path, "java", f"echo 'java version \"{version}\"' >&2")
        with pytest.raises(Refused, match=rf"{said}.*Java 17 or newer.*apt install"):
            java(str(tmp_path))

    def test_none_is_refused_with_the_cure(self, tmp_path: Path):
        with pytest.raises(Refused, match=r"there is no java.*apt install"):
            java(str(tmp_path))


class TestInTheBackground:
    @pytest.fixture(autouse=True)
    def bench(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        return Workbench.of_this_process()

    def test_to_stop_what_does_not_run_is_done_already(self, capsys: pytest.CaptureFixture[str]):
        assert main(["down"]) == 0
        assert capsys.readouterr() == ("", "nothing runs\n")

    def test_a_shell_gets_lines_and_nothing_else(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        there = Running(pid=1, url="http://127.0.0.1:1", log="/nowhere")
        monkeypatch.setattr(Background, "start", lambda *_: there)
        assert main(["up"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert "export AWS_ENDPOINT_URL=http://127.0.0.1:1" in lines
        assert all(re.fullmatch(r"export [A-Z_]+=\S+", line) for line in lines)

    def test_other_words_are_refused(self, capsys: pytest.CaptureFixture[str]):
        assert main(["sideways"]) == 2
        assert "up|down" in capsys.readouterr().err
