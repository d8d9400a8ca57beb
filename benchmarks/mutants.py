"""Change the product at random places, and print each change that no test notices.

`make mutants COUNT=200 SEED=1` draws places in the domain, the services and the adapters, and at
each place one of the changes that cosmic-ray knows for it: a condition turned round, a comparison,
an operator or a number replaced, a loop that never runs, an `except` that catches nothing. First
all tests run in a copy of the checkout, without a change: only those that pass there take part, and
coverage says what each executes. Then each mutant meets the tests of its line, the most specific
first, up to a minute of them.

cosmic-ray is chosen over mutmut 3, which maps functions to tests by itself and is faster, but
turns no condition round and changes nothing in a decorated function, so in no property.
"""

from __future__ import annotations

import argparse
import ast
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

PRODUCT = Path("layers/core/plimsoll")
MUTATED = [PRODUCT / "domain", PRODUCT / "services", PRODUCT / "adapters"]
TESTS = ("unit", "functions", "contract", "storms", "e2e/test_examples.py")
SLOW = "cluster or long or localstack or emulator"
CORES = 2
TEST_SECONDS = 60.0
"""A mutant that outlives this much of the tests on its line has survived."""
HANGING_SECONDS = 2 * TEST_SECONDS + 60
EQUIVALENT = (
    "core/NoOp",
    # Enums, None and interned strings are equal exactly if they are identical.
    "core/ReplaceComparisonOperator_Eq_Is",
    "core/ReplaceComparisonOperator_NotEq_IsNot",
    "core/ReplaceComparisonOperator_Is_Eq",
    "core/ReplaceComparisonOperator_IsNot_NotEq",
)

type Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change at one place; `occurrence` counts the operator's places in the module."""

    module: Path
    position: Position
    operator: str
    occurrence: int

    def code(self) -> str:
        """The module's source with the change made."""
        changed = mutate_code(
            self.module.read_text(), get_operator(self.operator)(), self.occurrence
        )
        assert isinstance(changed, str), self
        return changed

    def diff(self) -> str:
        """The changed lines."""
        before, after = self.module.read_text().splitlines(), self.code().splitlines()
        lines = list(unified_diff(before, after, n=0, lineterm=""))[3:]
        return "\n".join(f"    {line}" for line in lines)

    @property
    def title(self) -> str:
        """Where it is, and what it changes."""
        return f"{self.module}:{self.position[0]} {self.operator.removeprefix('core/')}"


def without_effect(node: ast.AST) -> list[ast.expr]:
    """Parts of the node that no running code reads: annotations, `@override`, `frozen=True`."""
    match node:
        case ast.arg(annotation=ast.expr() as unread) | ast.AnnAssign(annotation=unread):
            return [unread]
        case ast.TypeAlias(value=unread) | ast.If(test=ast.Name(id="TYPE_CHECKING") as unread):
            return [unread]
        case ast.FunctionDef(returns=returns, decorator_list=decorators):
            names = [name for name in decorators if isinstance(name, ast.Name)]
            return [name for name in names if name.id == "override"] + (
                [returns] if returns else []
            )
        case ast.ClassDef(decorator_list=decorators):
            calls = [call for call in decorators if isinstance(call, ast.Call)]
            return [keyword.value for call in calls for keyword in call.keywords]
        case _:
            return []


def mutants_of(module: Path) -> Iterator[Mutant]:
    source = module.read_text()
    # The `@` of a decorator stands one column before its name.
    unread = [
        ((part.lineno, part.col_offset - 1), (part.end_lineno or 0, part.end_col_offset or 0))
        for node in ast.walk(ast.parse(source))
        for part in without_effect(node)
    ]
    operators = {
        name: get_operator(name)()
        for name in operator_names()
        if not get_operator(name).arguments() and name not in EQUIVALENT
    }
    occurrences = Counter[str]()
    for node in ast_nodes(get_ast(source)):
        for name, operator in operators.items():
            for position, _ in operator.mutation_positions(node):
                if not any(start <= position < end for start, end in unread):
                    yield Mutant(module, position, name, occurrences[name])
                occurrences[name] += 1


def sample(modules: Sequence[Path], count: int, *, seed: int) -> list[Mutant]:
    """Draw places, then one change at each: else arithmetic, with ten changes each, would prevail."""
    places = defaultdict[tuple[Path, Position], list[Mutant]](list)
    for module in modules:
        for mutant in mutants_of(module):
            places[module, mutant.position].append(mutant)
    chance = random.Random(seed)
    drawn = chance.sample(sorted(places), min(count, len(places)))
    return [chance.choice(places[place]) for place in drawn]


def seconds_by_test(junit: Path) -> dict[str, float]:
    """Return how long each test took that passed."""
    return {
        _test_id(case.attrib["classname"], case.attrib["name"]): float(case.attrib["time"])
        for case in ET.parse(junit).iter("testcase")
        if not len(case)
    }


def _test_id(classname: str, name: str) -> str:
    """Return pytest's name of a test, whose class stands behind the module in JUnit's."""
    module, _, inner = classname.partition(".Test")
    path = f"{module.replace('.', '/')}.py"
    return "::".join([path, *([f"Test{inner}"] if inner else []), name])


class Selection:
    """Which tests execute which line, from coverage's contexts."""

    def __init__(self, coverage: Path, seconds: Mapping[str, float]) -> None:
        self._data = CoverageData(str(coverage))
        self._data.read()
        self._files = {
            name[name.index(str(PRODUCT)) :]: name
            for name in self._data.measured_files()
            if str(PRODUCT) in name
        }
        self._seconds = seconds
        self._lines_by_test = Counter[str]()
        for name in self._files.values():
            for tests in self._data.contexts_by_lineno(name).values():
                self._lines_by_test.update({test.split("|")[0] for test in tests})

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests that execute the mutant's line, those that execute little else first.

        A line that only an import executes, such as a default or a constant, is tested by every
        test of its module; where nothing else stands there, by those of the modules that import it.
        """
        by_line = self._data.contexts_by_lineno(self._files[str(mutant.module)])
        executed = max((line for line in by_line if line <= mutant.position[0]), default=0)
        tests = sorted(
            (
                self._known(by_line.get(executed, ()))
                or self._of(mutant.module)
                or {test for module in self._importers(mutant.module) for test in self._of(module)}
            ),
            key=lambda test: (self._lines_by_test[test], test),
        )
        chosen, spent = list[str](), 0.0
        for test in tests:
            if spent + self._seconds[test] <= TEST_SECONDS:
                chosen.append(test)
                spent += self._seconds[test]
        return chosen or tests[:1]

    def _known(self, contexts: Iterable[str]) -> set[str]:
        return {context.split("|")[0] for context in contexts} & self._seconds.keys()

    def _of(self, module: Path) -> set[str]:
        by_line = self._data.contexts_by_lineno(self._files[str(module)])
        return self._known(context for contexts in by_line.values() for context in contexts)

    def _importers(self, module: Path) -> list[Path]:
        name = ".".join(module.relative_to(PRODUCT.parent).with_suffix("").parts)
        return [Path(f) for f in self._files if f"from {name} import" in Path(f).read_text()]


class Workspace:
    """A copy of the checkout in which one mutant lives at a time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        listed = subprocess.check_output(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            text=True,
        )
        for name in filter(None, listed.split("\0")):
            if Path(name).is_file():
                (directory / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(name, directory / name)
        for built in (".aws-sam", ".venv", ".tools"):
            if Path(built).exists():
                (directory / built).symlink_to(Path(built).resolve())

    def select(self) -> Selection:
        """Return which tests pass here without a mutant, and what they execute."""
        self._pytest(
            *(f"tests/{folder}" for folder in TESTS),
            *("-n", str(CORES), "--dist", "worksteal", "-m", f"not ({SLOW})"),
            *("--cov=plimsoll", "--cov-report=", "--cov-context=test", "--junitxml=junit.xml"),
        )
        seconds = seconds_by_test(self._directory / "junit.xml")
        return Selection(self._directory / ".coverage", seconds)

    def kills(self, mutant: Mutant, tests: Sequence[str]) -> bool:
        """Whether a test fails, or never ends, with the mutant in place."""
        module, selection = self._directory / mutant.module, self._directory / "selection.txt"
        module.write_text(mutant.code())
        selection.write_text("\n".join(tests))
        try:
            return self._pytest("-x", f"@{selection}", timeout=HANGING_SECONDS) != 0
        except subprocess.TimeoutExpired:
            return True
        finally:
            shutil.copy(mutant.module, module)

    def _pytest(self, *arguments: str, timeout: float | None = None) -> int:
        roots = ("layers/core", "layers/service", "agent", "cli", "simulation", "testbed", ".")
        sources = [self._directory / root for root in roots]
        python = Path(".venv/bin/python").absolute()
        return subprocess.run(
            [python, "-m", "pytest", "-q", "--tb=no", "--hypothesis-seed=0", *arguments],
            cwd=self._directory,
            env={
                **os.environ,  # noqa: TID251
                "PYTHONPATH": os.pathsep.join(map(str, sources)),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            timeout=timeout,
            check=False,
        ).returncode


def main() -> int:
    """Print what survives; the exit status says whether fewer than `--goal` percent are killed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--goal", type=float, default=90, help="percent (default: 90)")
    parser.add_argument("--under", type=Path, nargs="*", default=MUTATED)
    options = parser.parse_args()
    modules = sorted(module for folder in options.under for module in folder.rglob("*.py"))
    mutants = sample(modules, options.count, seed=options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        workspaces = [Workspace(Path(scratch) / str(core)) for core in range(CORES)]
        selection = workspaces[0].select()
        selected = {mutant: selection.tests(mutant) for mutant in mutants}
        free = queue.SimpleQueue[Workspace]()
        for workspace in workspaces:
            free.put(workspace)

        def survives(mutant: Mutant) -> bool:
            workspace = free.get()
            try:
                return not (selected[mutant] and workspace.kills(mutant, selected[mutant]))
            finally:
                free.put(workspace)

        survivors = 0
        with ThreadPoolExecutor(CORES) as pool:
            for mutant, survived in zip(mutants, pool.map(survives, mutants), strict=True):
                if survived:
                    survivors += 1
                    print(
                        f"{mutant.title} ({len(selected[mutant])} tests)\n{mutant.diff()}",
                        flush=True,
                    )
    killed = len(mutants) - survivors
    percent = 100 * killed / len(mutants)
    print(f"{killed} of {len(mutants)} mutants killed ({percent:.0f} %), seed {options.seed}")
    return int(percent < options.goal)


if __name__ == "__main__":
    sys.exit(main())
