"""The command `plimsoll`: one module for each command, and one entry in the table that names it.

A command is imported only when it is called, so that `plimsoll status` does not load what a drill
needs, and `plimsoll --help` loads nothing. With `--output json` or `yaml`, standard output holds
the result and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple, override

import click
from click.shell_completion import CompletionItem

from plimsoll.domain.errors import PlimsollError
from plimsoll_cli.terminal import printable, say


class Entry(NamedTuple):
    """A command in the table."""

    place: str
    """`module:function`, the module in this package, such as `plan.reports:reports` in `plan/reports.py`."""
    help: str
    """One line, in the imperative mood, that fits a terminal of 80 columns."""


SECTIONS: Final[Mapping[str, Mapping[str, Entry]]] = {
    # A new command is a module in the folder of what it is about, and an entry here.
    "Everyday": {
        "status": Entry(
            "cluster.status:status", "Show open interruptions, released pods and zonal shifts."
        ),
        "rehearse": Entry(
            "lab.rehearse:rehearse", "Simulate an interruption of a live cluster, read-only."
        ),
        "console": Entry(
            "console.console:console", "Watch a storm, and what rides on spot, in a browser."
        ),
        "drain": Entry("drain.drain:drain", "Drain nodes by hand, starting replacements first."),
        "doctor": Entry(
            "doctor.doctor:doctor", "Check an installation and print a fix for each fault."
        ),
        "completion": Entry("completion:completion", "Print the completion script of a shell."),
    },
    "Cluster": {
        "clusters": Entry("cluster.clusters:clusters", "Manage the clusters of a stack."),
        "guard": Entry(
            "cluster.guard:guard", "Protect workloads from other programs that drain nodes."
        ),
        "install-policy": Entry(
            "cluster.install_policy:install_policy",
            "Keep on-demand floors with an admission policy.",
        ),
        "template": Entry(
            "cluster.template:template", "Print a CloudFormation template that needs no build."
        ),
    },
    "Plan and report": {
        "plan": Entry("plan.plan:plan", "Show on-demand floors and the moves that restore them."),
        "reports": Entry("plan.reports:reports", "List the reports of past interruptions."),
    },
    "Batch": {
        "queues": Entry("batch.queues:queues", "Check, apply, plan and run batch queues."),
        "jobs": Entry(
            "batch.jobs:jobs", "List, submit, explain, suspend, resume and cancel gangs."
        ),
    },
    "Service": {
        "login": Entry("service.advice:login", "Log in to the optimisation service."),
        "logout": Entry("service.advice:logout", "End your session at the service."),
        "savings": Entry(
            "service.advice:savings", "Compare the cost of a cluster with the cheapest mix."
        ),
        "history": Entry("service.advice:history", "Show what a cluster had and used."),
        "recommendations": Entry(
            "service.decisions:recommendations", "Show recommendations and decide about them."
        ),
        "instructions": Entry(
            "service.instructions:instructions", "List signed instructions and check them offline."
        ),
        "gpu": Entry("gpu:gpu", "Find idle GPUs, and size and split them."),
        "tenants": Entry(
            "service.tenants:tenants", "Manage who has access to the service, and its tenants."
        ),
        "agent": Entry("service.agent:agent", "Install or run the agent of a cluster."),
    },
    "Lab": {
        "demo": Entry("lab.demo:demo", "Watch an interruption, the service, or batch queues."),
        "drill": Entry("lab.drill:drill", "Play a scenario and measure its workloads."),
        "storms": Entry("lab.storms:storms", "Play random scenarios and check fixed rules."),
        "controlplane": Entry(
            "lab.controlplane:controlplane", "Run a Kubernetes control plane on this machine."
        ),
    },
}
COMMANDS: Final[Mapping[str, Entry]] = {
    name: entry for entries in SECTIONS.values() for name, entry in entries.items()
}
REMOVED: Final[Mapping[str, str]] = {
    # A removed command answers with the one that replaces it.
    "event": "rehearse --event FILE",
    "snippet": "plan snippet",
    "pools": "reports pools",
    "submit": "jobs submit",
    "why": "jobs why",
    "suspend": "jobs suspend",
    "resume": "jobs resume",
    "cancel": "jobs cancel",
}
WIDEST: Final = max(map(len, COMMANDS))
BEGIN: Final = """\
Keep Kubernetes workloads running through spot interruptions.

Begin with:
  plimsoll rehearse --context NAME  Simulate an interruption of your cluster, read-only.
  plimsoll drain NODE --dry-run     Show how a node would be drained, without writing.
  plimsoll doctor --cluster NAME    Check an installation, once the stack is deployed.

`plimsoll --help` lists all commands."""

EXIT_STATUS: Final = """\b
Exit status:
  0  the command succeeded, or the answer is yes
  1  the answer is no: for example, an expectation did not hold
  2  an argument is wrong, or a system is out of reach; the message says why
"""

BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
"""The shells' status of a program that Ctrl-C ended; click's own 1 would read as a failed drill."""


class Failure(click.ClickException):
    """An error of ours, printed in a line or two."""

    exit_code = BAD_INPUT


class Commands(click.Group):
    """Finds commands in the table, lists them by section, and prints our errors without a traceback."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].place.partition(":")
        command: click.Command = getattr(import_module(f"plimsoll_cli.{module}"), name)
        command.short_help = COMMANDS[cmd_name].help
        return command

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # Completion asks too, with resilient parsing: it then completes nothing.
        if args[0] in REMOVED and not ctx.resilient_parsing:
            raise Failure(f"`plimsoll {args[0]}` is now `plimsoll {REMOVED[args[0]]}`")
        return super().resolve_command(ctx, args)

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(n.ljust(WIDEST), entry.help) for n, entry in entries.items()])

    @override
    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = [(n, entry.help) for n, entry in COMMANDS.items() if n.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(name, help=about) for name, about in found] + options

    @override
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PlimsollError as error:
            raise Failure(printable(str(error))) from error
        except click.ClickException as error:
            vars(error)["message"] = printable(error.message)
            raise
        except KeyboardInterrupt:
            say("interrupted", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_STATUS,
    invoke_without_command=True,
)
@click.version_option(package_name="plimsoll")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Keep Kubernetes workloads running through spot interruptions."""
    if ctx.invoked_subcommand is None:
        say(BEGIN)
