"""Prints the licences of everything that a built layer holds: `make sbom` keeps them beside it.

python infra/local/notices.py .aws-sam/build/*Layer
"""

from __future__ import annotations

import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path


def texts(one: Distribution) -> list[str]:
    """Return the licences and notices that a package brings.

    Raises:
        SystemExit: it brings none: its licence must be looked up by somebody.
    """
    files = [file for file in one.files or () if ".dist-info" in file.parts[0]]
    named = [f for f in files if f.stem.upper().startswith(("LICEN", "NOTICE", "COPYING"))]
    if not named:
        raise SystemExit(f"{one.name} {one.version} brings no licence")
    return [Path(str(file.locate())).read_text(encoding="utf-8") for file in sorted(named)]


def main(layers: list[str]) -> None:
    """Print one chapter for each package, by name."""
    found = distributions(path=[str(Path(layer) / "python") for layer in layers])
    for one in sorted(found, key=lambda each: each.name.lower()):
        said = one.metadata.get("License-Expression") or one.metadata.get("License") or "see below"
        head = f"{one.name} {one.version} ({said.splitlines()[0]})"
        sys.stdout.write("\n".join([head, "=" * len(head), "", *texts(one), ""]))


if __name__ == "__main__":
    main(sys.argv[1:])
