"""`plimsoll gpu fit`: a slice, a number of time-slices, or "do not split", for each class of workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_never

import click

from plimsoll_cli.gpu.documents import class_days_options
from plimsoll_cli.gpu.files import CONTAINER, claim, patch, write
from plimsoll_cli.options import Output, Terminal, console, output_option, print_answer, table
from plimsoll_cli.terminal import say
from plimsoll_service.domain.gpu import (
    CARDS,
    ClassFit,
    DoNotSplit,
    Fit,
    Mechanism,
    Question,
    Size,
    Slice,
    TimeSlices,
    fit_classes,
    profiles_needed,
)
from plimsoll_service.wire.gpu import ClassDays


@click.command("fit")
@class_days_options
@click.option(
    "--card",
    type=click.Choice([*CARDS]),
    help="Size for this model. [default: the one that a class is on]",
)
@click.option(
    "--within",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.01,
    show_default=True,
    help="Allow so large a share of pods to overflow in held-out time.",
)
@click.option(
    "--cpu-bound",
    "cpu_bound",
    multiple=True,
    metavar="NAMESPACE/OWNER",
    help="Do not split for this workload: its CPUs hold its GPU back.",
)
@click.option(
    "--mechanism",
    type=click.Choice(["device-plugin", "dra", "kai"]),
    default="device-plugin",
    show_default=True,
    help="Ask for slices in this way.",
)
@click.option(
    "--container",
    default=CONTAINER,
    show_default=True,
    metavar="NAME",
    help="Write this container's name into patches.",
)
@click.option(
    "--files",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write the patches of pod templates into this folder.",
)
@output_option
def fit_command(  # noqa: PLR0913, PLR0917 - one for each option
    found: ClassDays,
    card: str | None,
    within: float,
    cpu_bound: tuple[str, ...],
    mechanism: Mechanism,
    container: str,
    files: Path | None,
    output: Output,
) -> None:
    """Show which slice each workload needs, and the evidence.

    The headroom of a card is the smallest with which no more pods overflow in held-out time than
    --within allows. Where no headroom does, the card is not split.
    """
    bound = [(namespace, name) for namespace, _, name in (e.partition("/") for e in cpu_bound)]
    asked = Question(card=card, within=within, cpu_bound=bound, mechanism=mechanism)
    answer = fit_classes(found.days, asked)
    patches = {
        f"{_stem(each)}-{what}.yaml": text
        for each in answer.classes
        for what, text in (("claim", claim(each)), ("gpu", patch(each, container)))
    }
    if files is not None:
        write(files, {name: text for name, text in patches.items() if text})
    if output != "table":
        print_answer(_plain(answer, container), output)
    else:
        _show(console(), answer)
        for name, text in patches.items() if files is None else ():
            if text:
                say(f"\n# {name}\n{text}", nl=False)


def _stem(of: ClassFit) -> str:
    each = of.of
    parts = (each.namespace, each.owner, each.template, each.model)
    return "-".join(part for part in parts if part).lower()


def _show(out: Terminal, answer: Fit) -> None:
    shown = table("WORKLOAD", "GPU", "PODS", "PEAK MIB", "ADVICE", "BY", "NOTE")
    for each in answer.classes:
        shown.add_row(
            f"{each.of.kind} {each.of.namespace}/{each.of.owner}",
            each.card,
            str(each.pods),
            "-" if each.peak_mib is None else str(each.peak_mib),
            _words(each.size),
            each.mechanism,
            "; ".join(each.notes),
        )
    out.print(shown)
    shown = table(
        "CARD", "HEADROOM", "LEARNT FROM", "OVER", "AT MOST (95 %)", "MORE CLEAN PODS NEEDED"
    )
    for card in answer.cards:
        for told in card.judgements:
            shown.add_row(
                card.model,
                "refused" if card.headroom is None else f"{card.headroom:.0%}",
                f"{told.learnt:.0%}",
                f"{told.over} of {told.judged} pods",
                f"{told.bound:.1%}",
                f"{told.needed(answer.within)} for {answer.within:.1%}",
            )
    out.print(shown)
    for card in answer.cards:
        out.print(
            f"{card.model}: {card.gpus:.0f} GPUs now, {card.gpus_after:.1f} after; {card.reason}"
        )


def _words(size: Size) -> str:
    match size:
        case Slice(profile=profile):
            return f"{profile.name} ({profile.usable_mib} MiB usable)"
        case TimeSlices(replicas=replicas, slowdown=slowdown):
            return f"{replicas} time-slices, a kernel takes {slowdown:.2f} times as long"
        case DoNotSplit(cause=cause, reason=reason):
            return f"do not split ({cause}): {reason}"
        case _:
            assert_never(size)


def _plain(answer: Fit, container: str) -> Any:
    return {
        "within": answer.within,
        "windows": answer.windows,
        "cards": [
            {
                "card": card.model,
                "headroom": card.headroom,
                "gpus": card.gpus,
                "gpusAfter": card.gpus_after,
                "reason": card.reason,
                "splits": [
                    {
                        "learnt": told.learnt,
                        "over": told.over,
                        "pods": told.judged,
                        "wholePods": told.whole,
                        "atMost": told.bound,
                        "moreCleanPodsNeeded": told.needed(answer.within),
                    }
                    for told in card.judgements
                ],
            }
            for card in answer.cards
        ],
        "classes": [
            {
                "workload": f"{each.of.kind} {each.of.namespace}/{each.of.owner}",
                "template": each.of.template,
                "card": each.card,
                "pods": each.pods,
                "peakMib": each.peak_mib,
                "advice": _words(each.size),
                "cause": each.size.cause if isinstance(each.size, DoNotSplit) else None,
                "mechanism": each.mechanism,
                "notes": each.notes,
                "claim": claim(each) or None,
                "patch": patch(each, container) or None,
            }
            for each in answer.classes
        ],
        "demand": profiles_needed(answer.classes),
    }
