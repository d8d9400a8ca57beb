"""The command `plimsoll`: one file for each command, and one line in the table.

A command is imported only when it is called, so that `plimsoll status` does not load what a drill
needs. What a command prints for people goes to standard output too, unless it was asked for JSON:
then standard output holds that and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, override

import click

from plimsoll.domain.errors import PlimsollError

COMMANDS: Final[Mapping[str, str]] = {
    # name -> "module:function". A new command is a file beside this one, and a line here.
    "agent": "plimsoll_cli.agent:agent",
    "demo": "plimsoll_cli.demo:demo",
    "demo-batch": "plimsoll_cli.demo_batch:demo_batch",
    "demo-service": "plimsoll_cli.demo_service:demo_service",
    "drill": "plimsoll_cli.drill:drill",
    "cancel": "plimsoll_cli.gangs:cancel",
    "clusters": "plimsoll_cli.clusters:clusters",
    "controlplane": "plimsoll_cli.controlplane:controlplane",
    "doctor": "plimsoll_cli.doctor:doctor",
    "drain": "plimsoll_cli.drain:drain",
    "event": "plimsoll_cli.event:event",
    "guard": "plimsoll_cli.guard:guard",
    "install-policy": "plimsoll_cli.install_policy:install_policy",
    "jobs": "plimsoll_cli.gangs:jobs",
    "login": "plimsoll_cli.advice:login",
    "plan": "plimsoll_cli.plan:plan",
    "queues": "plimsoll_cli.queues:queues",
    "recommendations": "plimsoll_cli.advice:recommendations",
    "pools": "plimsoll_cli.pools:pools",
    "rehearse": "plimsoll_cli.rehearse:rehearse",
    "reports": "plimsoll_cli.reports:reports",
    "resume": "plimsoll_cli.gangs:resume",
    "savings": "plimsoll_cli.advice:savings",
    "snippet": "plimsoll_cli.snippet:snippet",
    "status": "plimsoll_cli.status:status",
    "storms": "plimsoll_cli.storms:storms",
    "submit": "plimsoll_cli.submit:submit",
    "suspend": "plimsoll_cli.gangs:suspend",
    "tenants": "plimsoll_cli.tenants:tenants",
    "why": "plimsoll_cli.gangs:why_command",
}

BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
"""As shells say that Ctrl-C ended a program; click's own 1 would read as a failed drill."""


class Failure(click.ClickException):
    """An error of ours, said in a line or two."""

    exit_code = BAD_INPUT


class Commands(click.Group):
    """Finds the commands in the table, and says our errors without a traceback."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    @override
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PlimsollError as error:
            raise Failure(str(error)) from error
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="plimsoll")
def main() -> None:
    """Carry Kubernetes workloads through spot interruptions, from outside the cluster.

    Exit status: 0 it was done, or the answer is yes; 1 the answer is no (an expectation did not
    hold, a question was answered with no, a cluster may not be removed yet); 2 it could not be
    tried: something given is wrong, or what it needs cannot be reached. The message says what to do.
    """
