"""A cluster by kubeconfig, as kubectl reaches it: for people at a terminal, never in Lambda.

The official client reads the file, with all its ways to prove who one is (certificates, tokens,
programs such as `aws eks get-token`); requests then go the same way as in the functions. It writes
inlined certificates into temporary files, as it does for everybody.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, override

from plimsoll.adapters.kubernetes.client import CONNECTIONS, ClientTransport
from plimsoll.domain.errors import BadInput, Refused

if TYPE_CHECKING:
    from urllib3 import PoolManager


class KubeconfigTransport(ClientTransport):
    """Requests to the cluster of one context."""

    def __init__(self, configuration: Any, connections: int) -> None:
        token = _Token(configuration) if "authorization" in configuration.api_key else None
        super().__init__(configuration.host, token=token, connections=connections)
        self._configuration = configuration

    @property
    def server(self) -> str:
        """The address of the API server, as the kubeconfig has it."""
        return str(self._configuration.host)

    @property
    def ca(self) -> str | None:
        """The CA certificate that the kubeconfig trusts, in PEM; None: it names none."""
        file = self._configuration.ssl_ca_cert
        return None if file is None else Path(file).read_text(encoding="utf-8")

    @override
    @cached_property
    def _pool(self) -> PoolManager:
        from kubernetes.client.rest import RESTClientObject  # noqa: PLC0415 - slow to import

        rest = RESTClientObject(self._configuration, maxsize=self._connections)  # type: ignore[no-untyped-call] # has no types
        pool: PoolManager = rest.pool_manager
        return pool


class _Token:
    """The token that the kubeconfig gives; the client asks its program again when it expires."""

    def __init__(self, configuration: Any) -> None:
        self._configuration = configuration

    def get(self) -> str:
        """Return a token, without the word Bearer, which the transport adds."""
        said: str = self._configuration.get_api_key_with_prefix("authorization") or ""
        return said.removeprefix("Bearer ")

    def forget(self) -> None:
        """Do nothing: what there is to renew, the client renews by its expiry."""


def load(
    file: Path | None = None, context: str | None = None, *, connections: int = CONNECTIONS
) -> tuple[KubeconfigTransport, str]:
    """Read a kubeconfig and return the way to its cluster, and the name of the context.

    Args:
        file: None for where kubectl looks: $KUBECONFIG, else ~/.kube/config.
        context: None for the current one.
        connections: how many are kept open.

    Raises:
        BadInput: there is no such file or context, or it cannot be read.
        Refused: the program that it names for credentials failed.
    """
    from kubernetes.client.configuration import Configuration  # noqa: PLC0415 - see above
    from kubernetes.config import kube_config  # noqa: PLC0415 - slow to import

    if file is not None and not file.is_file():
        raise BadInput(f"--kubeconfig {file}: there is no such file")
    where = str(file) if file is not None else "the kubeconfig"
    path = None if file is None else str(file)
    try:
        contexts, current = kube_config.list_kube_config_contexts(path)  # type: ignore[no-untyped-call] # has no types
    except Exception as error:  # the client raises whatever its YAML reader and its own checks do
        raise BadInput(f"{where} cannot be read: {_one_line(error)}") from error
    name = context or (current or {}).get("name", "")
    names = [known["name"] for known in contexts]
    if name not in names:
        raise BadInput(f"{where} has no context {name!r}; it has: {', '.join(sorted(names))}")
    configuration = Configuration()  # type: ignore[no-untyped-call] # has no types
    try:
        kube_config.load_kube_config(  # type: ignore[no-untyped-call] # has no types
            path, name, client_configuration=configuration, persist_config=False
        )
    except Exception as error:  # as above
        raise Refused(f"{where}, context {name}: {_one_line(error)}") from error
    return KubeconfigTransport(configuration, connections), name


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
