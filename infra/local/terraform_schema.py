"""Prints which arguments and attributes Terraform's AWS provider knows, for the test of infra/terraform.

python infra/local/terraform_schema.py cdktf_cdktf_provider_aws-21.22.1-py3-none-any.whl >tests/package/terraform_schema.json

The wheel (`pip download --no-deps cdktf-cdktf-provider-aws`) has 228 MB unpacked and needs Node to be imported, so it
is read once, and what the module uses is kept. Each of its modules has a class with the arguments of a resource.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from typing import Any, Final
from zipfile import ZipFile

RESOURCES: Final = (
    "autoscaling_group_tag",
    "cloudformation_stack",
    "data_aws_partition",
    "data_aws_region",
    "eks_access_entry",
    "s3_object",
)
"""Modules of the wheel."""
_META: Final = {"connection", "count", "depends_on", "for_each", "lifecycle", "provider", "provisioners"}  # fmt: skip
_DOCUMENTED: Final = re.compile(r"docs/(resources|data-sources)/\w+ (aws_\w+)\}")
_PROVIDER: Final = re.compile(r"hashicorp/aws/([\d.]+)/docs")


def arguments(of: ast.ClassDef) -> dict[str, bool]:
    """Return the arguments of a class, and whether each is required."""
    (made,) = (n for n in of.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    pairs = zip(made.args.kwonlyargs, made.args.kw_defaults, strict=True)
    return {arg.arg: default is None for arg, default in pairs if arg.arg not in _META}


def attributes(of: ast.ClassDef) -> Iterator[str]:
    """Yield what other resources may read."""
    for node in of.body:
        if isinstance(node, ast.FunctionDef):
            names = {d.id for d in node.decorator_list if isinstance(d, ast.Name)} | {
                d.attr for d in node.decorator_list if isinstance(d, ast.Attribute)
            }
            if names & {"property", "getter"} and not node.name.endswith("_input"):
                yield node.name


def described(source: str) -> tuple[str, dict[str, Any]]:
    """Return a resource's type and what it knows; blocks have their own arguments."""
    classes = {n.name: n for n in ast.parse(source).body if isinstance(n, ast.ClassDef)}
    resource = next(c for c in classes.values() if _DOCUMENTED.search(ast.get_docstring(c) or ""))
    found = _DOCUMENTED.search(ast.get_docstring(resource) or "")
    assert found is not None  # noqa: S101 - it was searched for
    blocks = {
        name: arguments(classes[block])
        for name in arguments(classes[f"{resource.name}Config"])
        if (block := resource.name.removesuffix("A") + name.title().replace("_", "")) in classes
    }
    kind = "data." if found[1] == "data-sources" else ""
    return kind + found[2], {
        "arguments": arguments(classes[f"{resource.name}Config"]),
        "attributes": sorted(attributes(resource)),
        "blocks": blocks,
    }


def main(wheel: str) -> None:
    """Print the schema of the resources."""
    with ZipFile(wheel) as files:
        sources = [
            files.read(f"cdktf_cdktf_provider_aws/{name}/__init__.py").decode()
            for name in RESOURCES
        ]
    (provider,) = {version for source in sources for version in _PROVIDER.findall(source)}
    known = {"provider": provider, "resources": dict(map(described, sources))}
    json.dump(known, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
