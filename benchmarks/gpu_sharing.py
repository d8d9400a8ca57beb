"""What processes that share a GPU by time-slicing cost one another, beside the model of `plimsoll gpu fit`.

Processes of their own each run a vision transformer of the size of YOLOS-small on random pictures, as
pods on replicas of one GPU do. They compute always, or pause at random so that each alone would
compute for a share of the time. Then: what an idle process holds of the GPU's memory, whether anything
keeps a process from the memory of another, and how long a checkpoint takes. On a machine with a GPU and PyTorch:

    python -m benchmarks.gpu_sharing [--seconds 6] [--folder /var/tmp]
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from rich.console import Console

try:
    import torch
except ModuleNotFoundError:
    raise SystemExit("PyTorch is not installed: this runs on a machine with a GPU") from None

from benchmarks.output import machine, spread, table
from plimsoll_service.domain.gpu import slowdown

WARM_UP = 20
PIXELS_AS_TOKENS = 1350
"""Patches of a picture of 512 by 675 pixels, 16 by 16 each."""
RESULT_S = 300.0
GIB = 2**30
CASES = (
    (1, 1.0),
    (2, 1.0),
    (3, 1.0),
    (5, 1.0),
    (7, 1.0),
    (2, 0.5),
    (4, 0.5),
    (2, 0.1),
    (4, 0.1),
    (7, 0.1),
)
"""Processes, and the share of the time for which each would compute alone."""


def small_transformer() -> Any:
    layer = torch.nn.TransformerEncoderLayer(384, 6, 1536, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 12).cuda().eval()


def infer(
    barrier: Barrier, results: mp.Queue[list[float]], batch: int, pause: float, end: float
) -> None:
    """Compute for some seconds once all are ready; report how long each inference took."""
    model = small_transformer()
    picture = torch.randn(batch, PIXELS_AS_TOKENS, 384, device="cuda")
    took: list[float] = []
    with torch.inference_mode():
        for _ in range(WARM_UP):
            model(picture)
        torch.cuda.synchronize()
        barrier.wait()
        stop = time.monotonic() + end
        while (began := time.monotonic()) < stop:
            model(picture)
            torch.cuda.synchronize()
            took.append(time.monotonic() - began)
            if pause:  # of random length: processes of equal pauses would fall into step
                time.sleep(random.expovariate(1 / pause))
        barrier.wait()  # nobody ends before the others have measured
    results.put(took)


def together(processes: int, batch: int, pause: float, seconds: float) -> list[list[float]]:
    """Return the durations that each of some processes measured at the same time."""
    context = mp.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    started = [
        context.Process(target=infer, args=(barrier, results, batch, pause, seconds), daemon=True)
        for _ in range(processes)
    ]
    for process in started:
        process.start()
    found = [results.get(timeout=RESULT_S) for _ in started]
    for process in started:
        process.join()
    return found


def slowdowns(console: Console, batch: int, seconds: float) -> None:
    """Print how an inference slows down by the number of processes and their duty."""
    rows = table(
        f"{batch} pictures an inference",
        "processes",
        "duty of each alone",
        "median",
        "95 % of them",
        "inferences/s",
        "slowdown",
        "model",
    )
    alone = 0.0
    for processes, duty in CASES:
        pause = alone * (1 - duty) / duty
        found = together(processes, batch, pause, seconds)
        took = sorted(each for one in found for each in one)
        median = statistics.median(took)
        alone = alone or median
        rows.add_row(
            str(processes),
            f"{duty:.0%}",
            f"{median * 1000:.1f} ms",
            f"{took[len(took) * 95 // 100] * 1000:.1f} ms",
            f"{len(took) / seconds:,.0f}",
            f"{statistics.mean(took) / alone:.2f}",
            f"{slowdown([duty] * (processes - 1)):.2f}",
        )
    console.print(rows)


def hold(gib: float, results: mp.Queue[str]) -> None:
    """Take some memory of the GPU, and say what came of it."""
    said = "has it"
    try:
        held = torch.empty(int(gib * GIB), dtype=torch.uint8, device="cuda")
        held.fill_(1)
        torch.cuda.synchronize()
    except torch.cuda.OutOfMemoryError:
        said = "is refused: out of memory"
    results.put(said)
    time.sleep(RESULT_S)  # until it is ended: others are to find the memory taken


def used_mib() -> int:
    """Return what the driver says is used of the first GPU."""
    asked = ["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return int(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)


def memory(console: Console) -> None:
    """Print what a process holds that does nothing, and what a second one gets of a full GPU."""
    total = torch.cuda.mem_get_info()[1]
    before = used_mib()
    with holding(0.001):
        each = (used_mib() - before) / 2
    console.print(
        f"usable: {total // 2**20:,} MiB. Before: {before:,} MiB used. Each of two processes that "
        f"compute nothing holds {each:,.0f} MiB"
    )
    with holding(0.6 * total / GIB) as said:
        console.print(f"of two that take 60 % each, one {said[0]}, one {said[1]}")


@contextmanager
def holding(gib: float) -> Iterator[list[str]]:
    """Let two processes take some memory each, and give what they say of it."""
    context = mp.get_context("spawn")
    results = context.Queue()
    two = [context.Process(target=hold, args=(gib, results), daemon=True) for _ in range(2)]
    for process in two:
        process.start()
    yield sorted(results.get(timeout=RESULT_S) for _ in two)
    for process in two:
        process.terminate()
        process.join()


def checkpoints(console: Console, folder: Path, runs: int) -> None:
    """Print how long a training state takes from the GPU to a file that is on the disk."""
    rows = table("Checkpoint", "parameters", "written", "median", "least", "most", "GB/s")
    for millions in (125, 350, 1300):
        # weights and both moments of Adam in four bytes each
        state = {name: torch.randn(millions * 10**6, device="cuda") for name in ("w", "m", "v")}
        took = []
        for _ in range(runs):
            with tempfile.NamedTemporaryFile(dir=folder) as file:
                began = time.monotonic()
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
                took.append(time.monotonic() - began)
        size = 12 * millions / 1000
        rows.add_row(
            f"{millions} million",
            f"{size:.1f} GB",
            *spread(took, "{:.1f} s"),
            f"{size / statistics.median(took):.2f}",
        )
        del state
    console.print(rows)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args(argv)
    console = Console(width=110)
    if not torch.cuda.is_available():
        parser.error("PyTorch finds no GPU on this machine")
    console.print(f"{machine('torch')}; {torch.cuda.get_device_name()}")
    for batch in (1, 8):
        slowdowns(console, batch, chosen.seconds)
    memory(console)
    checkpoints(console, chosen.folder, chosen.runs)


if __name__ == "__main__":
    main()
