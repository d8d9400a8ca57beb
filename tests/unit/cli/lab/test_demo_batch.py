"""What `plimsoll demo batch` shows of gangs that hold slots, and of what became of them."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from plimsoll_cli.lab.demo_batch import comparison, line, slots
from plimsoll_testbed.rigs.gangs.cases import Case
from plimsoll_testbed.rigs.gangs.play import Progress


def a_progress(*, queued: bool, **more) -> Progress:
    case = Case(name="c", slots=10, jobs=2, queued=queued)
    return Progress(case=case, **more)


def text(table: Table) -> str:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_the_live_view_has_a_letter_for_each_pod_and_a_dot_for_each_free_place():
    stuck = a_progress(queued=False, bound={"job-0": 5, "job-1": 4})
    assert "AAAAABBBB." in text(slots([stuck]))


def test_the_comparison_says_never_where_a_job_did_not_complete():
    stuck = a_progress(queued=False, wasted=540.0)
    done = a_progress(queued=True, done={"job-0": 7.0, "job-1": 14.5})
    shown = text(comparison([stuck, done]))
    assert "0 of 2" in shown
    assert "never" in shown
    assert "2 of 2" in shown
    assert "14.5 s" in shown


def test_where_there_is_no_terminal_a_line_says_how_many_have_completed():
    assert line(a_progress(queued=True, done={"job-0": 7.0})) == "queues 1/2"
