"""How often a slice overflows in held-out time, by our rule and by Kruize's, on a trace of real pods.

Run it from the repository on a folder with `pod_gpu_memory_used_bytes_anon.tar.gz` of Alibaba's GenAI
trace, which is for study and research and is not in this repository:

    .venv/bin/python -m benchmarks.gpu_sizing --trace FOLDER

The trace has 22.8 hours of memory, of pods on cards of 48 GB; each pod is a class, and the cards are
what-ifs. https://github.com/alibaba/clusterdata/tree/master/cluster-trace-v2026-GenAI
Kruize sizes by the 98th (performance) or 60th (cost) percentile of maxima of 15 minutes:
https://github.com/kruize/autotune
"""

from __future__ import annotations

import argparse
import csv
import io
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from math import ceil
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.output import table
from plimsoll_service.domain.gpu import (
    CARDS,
    Card,
    Question,
    fit_classes,
    geometries_of,
    upper_bound,
)
from plimsoll_service.wire.gpu import UNSEEN, WINDOW, WINDOWS_PER_DAY, ClassDay, GpuClass, PodDay

FILE: Final = "pod_gpu_memory_used_bytes_anon.tar.gz"
SHOWN: Final = ("H100-80GB-HBM3", "H200", "RTX-PRO-6000-Blackwell-Server-Edition")
SPLITS: Final = (0.3, 0.4, 0.5, 0.6, 0.7)
MIB: Final = 2**20
NOTHING: Final = (UNSEEN,) * WINDOWS_PER_DAY

type Rule = Callable[[Sequence[int]], float]
"""Returns what a pod needs by its sorted maxima, in MiB."""
type Windows = Mapping[int, int]
"""The maximum of each window in MiB, by its number since the first one of the trace."""


def read(folder: Path) -> Mapping[str, Mapping[tuple[date, int], int]]:
    """Return the maxima of each pod in MiB, by day and window."""
    found: dict[str, dict[tuple[date, int], int]] = defaultdict(dict)
    for pod, at, mib in _rows(folder / FILE):
        key = at.date(), (at.hour * 3600 + at.minute * 60) // int(WINDOW.total_seconds())
        found[pod][key] = max(found[pod].get(key, 0), mib)
    return found


def _rows(file: Path) -> Iterator[tuple[str, datetime, int]]:
    with tarfile.open(file) as archive:
        for member in archive:
            content = archive.extractfile(member)
            for row in csv.DictReader(io.TextIOWrapper(content)) if content else ():
                at = datetime.fromtimestamp(float(row["timestamp_anon"]), UTC)
                yield row["container_ip"], at, ceil(float(row["value"]) / MIB)


def documents(pods: Mapping[str, Mapping[tuple[date, int], int]]) -> Iterator[ClassDay]:
    """Yield each pod as a class of its own, by day."""
    for pod, windows in pods.items():
        for day in sorted({day for day, _ in windows}):
            memory = tuple(windows.get((day, at), UNSEEN) for at in range(WINDOWS_PER_DAY))
            yield ClassDay(
                of=GpuClass(namespace="trace", kind="Pod", owner=pod, model="trace"),
                day=day,
                resource="nvidia.com/gpu",
                pods=(
                    PodDay(
                        pod=pod,
                        node="unknown",
                        memory_mib=memory,
                        duty=NOTHING,
                        dram=NOTHING,
                        power_w=NOTHING,
                    ),
                ),
                joint_memory_mib=memory,
                joint_duty=NOTHING,
            )


def whole_trace(pods: Mapping[str, Mapping[tuple[date, int], int]]) -> Sequence[Windows]:
    """Return the maxima of each pod by windows from the first of all pods on."""
    first = min(day for windows in pods.values() for day, _ in windows)
    numbered = [
        {(day - first).days * WINDOWS_PER_DAY + at: mib for (day, at), mib in windows.items()}
        for windows in pods.values()
    ]
    begin = min(at for windows in numbered for at in windows)
    return [{at - begin: mib for at, mib in windows.items()} for windows in numbered]


def by_rule(
    card: Card, trace: Sequence[Windows], learnt: float, rule: Rule
) -> tuple[float, int, int]:
    """Return the share of GPUs that a rule saves, the pods over, and the pods in a slice."""
    end = max(at for windows in trace for at in windows) + 1
    cut = round(end * learnt)
    sizes: Counter[str] = Counter()
    over = judged = 0
    for windows in trace:
        before = sorted(mib for at, mib in windows.items() if at < cut)
        after = max((mib for at, mib in windows.items() if at >= cut), default=None)
        if not before or after is None:
            continue
        need = rule(before)
        fitting = (p for p in card.profiles.values() if p.usable_mib >= need)
        chosen = next(fitting, [*card.profiles.values()][-1])
        sizes[chosen.name] += 1
        if chosen.compute < card.compute:
            judged += 1
            over += after > chosen.usable_mib
    geometries = geometries_of(card)
    return 1 - geometries.needed(geometries.counts(sizes)) / sizes.total(), over, judged


def percentile(share: float) -> Rule:
    """Return the rule of Kruize."""
    return lambda before: before[ceil(len(before) * share) - 1]


def above_peak(headroom: float) -> Rule:
    """Return our rule, with the headroom of a card."""
    return lambda before: before[-1] * (1 + headroom)


def main() -> None:
    """Print a table for each card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, required=True, metavar="FOLDER")
    pods = read(parser.parse_args().trace)
    trace = whole_trace(pods)
    days = [*documents(pods)]
    out = Console(width=160)
    for model in SHOWN:
        card = CARDS[model]
        found = fit_classes(days, Question(card=model))
        told = found.cards[0]
        title = f"{model}, {len(found.classes)} pods: over / judged (at most, 95 %) by the share learnt; saved at 50%"
        shown = table(title, "rule", *(f"{split:.0%}" for split in SPLITS), "GPUs saved")
        for share in (0.98, 0.6):
            rows = [by_rule(card, trace, split, percentile(share)) for split in SPLITS]
            shown.add_row(
                f"Kruize p{share * 100:.0f}",
                *(f"{over} / {n} ({upper_bound(over, n):.1%})" for _, over, n in rows),
                f"{rows[SPLITS.index(0.5)][0]:.1%}",
            )
        name, less = "ours: refused", 0.0
        if told.headroom is not None:
            name = f"ours, +{told.headroom:.0%}"
            less, _, _ = by_rule(card, trace, 0.5, above_peak(told.headroom))
        shown.add_row(
            name,
            *(f"{each.over} / {each.judged} ({each.bound:.1%})" for each in told.judgements),
            f"{less:.1%}",
        )
        out.print(shown)
        out.print(f"{told.reason}; {told.judgements[-1].needed(found.within)} more clean pods\n")


if __name__ == "__main__":
    main()
