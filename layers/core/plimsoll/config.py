"""What a deployment decides: the one place that knows the names of environment variables.

Every field is required and is the variable of the same name in capitals, so that a forgotten line
in the template fails at the first call and by name, instead of working with a silent default.
A test compares the fields with the template.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from plimsoll.domain.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the settings of every stack have in common: each field is read off its variable, by its type."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the environment, `os.environ` in Lambda.

        Raises:
            BadInput: a variable is missing or unreadable; the message names it.
        """
        names = {field.name.upper(): field for field in fields(cls)}
        if missing := names.keys() - env.keys():
            raise BadInput(f"environment variables are missing: {', '.join(sorted(missing))}")
        values: dict[str, Any] = {
            field.name: _read(name, field.type, env[name]) for name, field in names.items()
        }
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Settings):
    """One stack's settings."""

    aws_region: str
    """The region of the stack and of its clusters; Lambda sets it."""
    tables: Mapping[str, str]
    """Names of the DynamoDB tables, by those in the template."""
    notices_queue: str
    """URL."""
    notices_dead_queue: str
    """URL; notices that no further attempt can help lie here with their reasons."""
    wake_ups_queue: str
    """URL."""
    resyncs_queue: str
    """URL."""
    report_topic: str
    """ARN of the SNS topic that is told what interruptions cost; empty: none."""
    console_url: str
    """Address of the hosted console, which messages link to; empty: there is none."""
    kill_switch: bool
    """No write to any cluster or node group, whatever its mode."""
    account: str
    """The account of the stack and of its clusters: notices of any other are not ours."""
    canary_secret: str
    """ARN of the secret that signs canaries."""
    accept_drills: bool
    """Whether notices of the source `plimsoll.drill` are taken as real."""


def in_lambda() -> bool:
    """Whether this process is a Lambda function.

    https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
    """
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


def has_telemetry_layer() -> bool:
    """Whether a layer exports OpenTelemetry (`TelemetryLayer` of the template): it starts the function by a wrapper."""
    return "AWS_LAMBDA_EXEC_WRAPPER" in os.environ


def _read(name: str, kind: Any, text: str) -> object:
    try:
        return _READERS[kind](text)
    except ValueError as error:
        raise BadInput(f"the environment variable {name} is {text!r}: {error}") from error


def _switch(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError('it must be "true" or "false"')
    return text == "true"


def _rate(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError("it must be a whole number above 0")
    return int(text)


# Annotations are strings here, because of `from __future__ import annotations`.
_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "str": str,
    "bool": _switch,
    "int": _rate,
    "Mapping[str, str]": json.loads,
}
