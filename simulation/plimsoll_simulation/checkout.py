"""The checkout of this repository, whose tools and artefacts the rigs use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from plimsoll.domain.errors import BadInput, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """Where the parts lie that the rig starts: a checkout of this repository, made ready by make."""

    root: Path

    @classmethod
    def find(cls) -> Self:
        """Return the checkout that this package is installed from.

        Raises:
            BadInput: it was installed from elsewhere, with `pip install .` for example.
        """
        root = Path(__file__).resolve().parents[2]
        if not (root / "template.yaml").is_file():
            raise BadInput(
                "this needs a checkout of Plimsoll, and what `make setup build` prepares in it: "
                "clone the repository, run that there, and use its .venv/bin/plimsoll"
            )
        return cls(root=root)

    @property
    def sam(self) -> Path:
        """SAM CLI, in an environment of its own."""
        return self._ready(".tools/sam/bin/sam", "make setup")

    @property
    def ministack(self) -> Path:
        """MiniStack, in an environment of its own."""
        return self._ready(".tools/ministack/bin/ministack", "make setup")

    @property
    def localstack(self) -> Path:
        """The Python of LocalStack's environment."""
        self._ready(".tools/localstack/.plugin", "make localstack")
        return self.root / ".tools/localstack/bin/python"

    @property
    def dynamodb_local(self) -> Path:
        """The folder of DynamoDB Local."""
        return self._ready(".tools/dynamodb-local", "make localstack")

    @property
    def template(self) -> Path:
        """The built template."""
        return self._ready(".aws-sam/build/template.yaml", "make build")

    @property
    def service_template(self) -> Path:
        """The built template of the optimisation service."""
        return self._ready(".aws-sam/service/build/template.yaml", "make build")

    @property
    def batch_template(self) -> Path:
        """The built template of the batch queues."""
        return self._ready(".aws-sam/batch/build/template.yaml", "make build")

    def _ready(self, path: str, cure: str) -> Path:
        found = self.root / path
        if not found.exists():
            raise Refused(f"{found} is missing: run `{cure}` in a checkout of Plimsoll")
        return found
