"""The packages of the domain: each has its place in their order, a face that others need, and a line in the page."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator

import pytest

from tests.package.template import ROOT

DOMAIN = ROOT / "layers" / "core" / "plimsoll" / "domain"
MOST_PACKAGES = 16
PACKAGES = sorted(
    ".".join(face.parent.relative_to(DOMAIN).parts)
    for face in DOMAIN.rglob("__init__.py")
    if face.parent != DOMAIN
)
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
TREES = ("functions", "layers", "agent", "cli", "testbed", "benchmarks")


def order() -> list[str]:
    """The packages and modules of the domain, those that import nothing of the others first."""
    (layers,) = (c["layers"] for c in CONTRACTS if c.get("containers") == ["plimsoll.domain"])
    return [*reversed(layers)]


def imports() -> Iterator[tuple[str, str, str]]:
    """Yield who imports what of which package of the domain: (folder, package, name)."""
    for tree in TREES:
        for path in (ROOT / tree).rglob("*.py"):
            folder = str(path.parent.relative_to(ROOT))
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and (module := node.module or ""):
                    package = module.removeprefix("plimsoll.domain.")
                    yield from ((folder, package, a.name) for a in node.names if package != module)


IMPORTED = list(imports())


def test_there_are_few_packages_and_their_order_is_held():
    assert len(PACKAGES) <= MOST_PACKAGES
    tops = {package.partition(".")[0] for package in PACKAGES}
    assert {*order()} == tops | {p.stem for p in DOMAIN.glob("*.py") if p.stem != "__init__"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_is_imported_by_its_face(package):
    assert any(
        contract["type"] == "protected"
        and contract["protected_modules"] == [f"plimsoll.domain.{package}.*"]
        and contract["allowed_importers"] == [f"plimsoll.domain.{package}"]
        for contract in CONTRACTS
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_a_face_exports_what_others_use_and_nothing_else(package):
    folder = DOMAIN / package.replace(".", "/")
    tree = ast.parse((folder / "__init__.py").read_text())
    (exported,) = (
        {*ast.literal_eval(node.value)}
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    inside = str(folder.relative_to(ROOT))
    used = {
        name
        for by, of, name in IMPORTED
        if of == package and not f"{by}/".startswith(f"{inside}/")
        if not (folder / f"{name}.py").exists()
    }
    assert exported == used


def test_the_page_lists_the_packages_in_their_order():
    page = (ROOT / "docs" / "develop" / "architecture.md").read_text()
    table = page.partition("## Packages of the domain")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == order()
