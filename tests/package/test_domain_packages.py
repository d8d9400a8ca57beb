"""The packages of each domain: their place in its order, a face that others need, and a line in the page."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache

import pytest

from tests.package.template import ROOT

LAYERS = ROOT / "layers"
DOMAINS = {
    "plimsoll.domain": LAYERS / "core" / "plimsoll" / "domain",
    "plimsoll_service.domain": LAYERS / "service" / "plimsoll_service" / "domain",
    "plimsoll_batch.domain": LAYERS / "batch" / "plimsoll_batch" / "domain",
}
MOST_PACKAGES = 17
"""In one domain."""
PACKAGES = sorted(
    (domain, ".".join(face.parent.relative_to(folder).parts))
    for domain, folder in DOMAINS.items()
    for face in folder.rglob("__init__.py")
    if face.parent != folder
)
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
TREES = ("functions", "layers", "agent", "cli", "simulation", "testbed", "benchmarks")


def order(domain: str) -> list[str]:
    """The packages and modules of a domain, those that import nothing of the others first."""
    (contract,) = (c for c in CONTRACTS if c.get("containers") == [domain])
    assert contract["exhaustive"]
    return [*reversed(contract["layers"])]


@cache
def imports() -> list[tuple[str, str, str]]:
    """Return who imports what from where: (folder, module, name)."""
    return [
        (str(path.parent.relative_to(ROOT)), node.module or "", each.name)
        for tree in TREES
        for path in (ROOT / tree).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    ]


@pytest.mark.parametrize("domain", DOMAINS)
def test_there_are_few_packages_and_their_order_is_held(domain):
    folder = DOMAINS[domain]
    packages = [package for of, package in PACKAGES if of == domain]
    assert 0 < len(packages) <= MOST_PACKAGES
    tops = {package.partition(".")[0] for package in packages}
    assert {*order(domain)} == tops | {p.stem for p in folder.glob("*.py") if p.stem != "__init__"}


@pytest.mark.parametrize(("domain", "package"), PACKAGES)
def test_a_package_is_imported_by_its_face(domain, package):
    assert any(
        contract["type"] == "protected"
        and contract["protected_modules"] == [f"{domain}.{package}.*"]
        and contract["allowed_importers"] == [f"{domain}.{package}"]
        for contract in CONTRACTS
    )


@pytest.mark.parametrize(("domain", "package"), PACKAGES)
def test_a_face_exports_what_others_use_and_nothing_else(domain, package):
    folder = DOMAINS[domain] / package.replace(".", "/")
    tree = ast.parse((folder / "__init__.py").read_text())
    (exported,) = (
        {*ast.literal_eval(node.value)}
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    inside = str(folder.relative_to(ROOT))
    used = {
        name
        for by, of, name in imports()
        if of == f"{domain}.{package}" and not f"{by}/".startswith(f"{inside}/")
        if not (folder / f"{name}.py").exists()
    }
    assert exported == used


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_page_lists_the_packages_in_their_order(domain):
    page = (ROOT / "docs" / "develop" / "architecture.md").read_text()
    section = page.partition("## Packages of the domains")[2].partition("\n## ")[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    (table,) = (each for each in tables if f"| packages of `{domain}` |" in each)
    rows = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == order(domain)
