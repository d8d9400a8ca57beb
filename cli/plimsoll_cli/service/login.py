"""The login to the optimisation service: a key or a session, in a file that only its owner can read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Meta, Struct

from plimsoll.domain.errors import BadInput, MissingRights
from plimsoll.services.ports import Clock
from plimsoll_agent.identity import Identity
from plimsoll_agent.service import Service
from plimsoll_service.wire.access import Enrolled, InstructionKey
from plimsoll_service.wire.documents import Malformed, Text, decode, encode
from plimsoll_service.wire.people import Ended, Secret, SignedIn, SignIn

FILE: Final = "service.json"
PERSON: Final = "person"
"""Stands where an agent names its cluster."""


class Login(Struct, frozen=True, kw_only=True):
    """The content of the file."""

    service: Text
    """The address of the service."""
    private_key: Annotated[bytes, Meta(min_length=32, max_length=32)] | None = None
    enrolled: Enrolled | None = None
    session: Secret | None = None
    """Is used where there is one, and not the key."""

    @property
    def identity(self) -> Identity | None:
        """Who signs; None: nobody, there is a session alone."""
        if self.private_key is None:
            return None
        return Identity(
            Ed25519PrivateKey.from_private_bytes(self.private_key), enrolled=self.enrolled
        )


def log_in(folder: Path, url: str, join_token: str, clock: Clock) -> Enrolled:
    """Enrol a new key and keep it. The file is written first: a key that is enrolled is never lost.

    If the answer was lost, the same key enrols again by the same join token.

    Raises:
        PlimsollError: the service refuses, or does not answer.
    """
    new = folder / f"{FILE}.new"
    login = Login(service=url, private_key=_begun_key(new, url))
    service = Service(url, login.identity, clock)
    _write(new, login)
    enrolled = service.enrol(join_token, PERSON)
    _write(new, msgspec.structs.replace(login, enrolled=enrolled))
    new.replace(folder / FILE)
    return enrolled


def begin_session(folder: Path, url: str, asked: SignIn, clock: Clock) -> SignedIn:
    """Exchange what a sign-in brought for a session, and keep that, beside a key for the same service.

    Raises:
        Throttled: a device code was not confirmed yet.
        PlimsollError: the service refuses, or does not answer.
    """
    begun = Service(url, None, clock).ask("POST", "/v1/sessions", SignedIn, asked)
    login = Login(service=url)
    with suppress(BadInput):
        kept = _read(folder)
        login = kept if kept.service == url else login
    _replace(folder, msgspec.structs.replace(login, session=begun.token))
    return begun


def log_out(folder: Path, clock: Clock) -> None:
    """End the session at the service, and forget it. A key stays, since it cannot be had again.

    Raises:
        BadInput: there is no session.
        PlimsollError: the service does not answer. The session may be good still, and is kept.
    """
    login = _read(folder)
    if login.session is None:
        raise BadInput("you are logged in by a key: `plimsoll tenants revoke` ends its access")
    # Where the session is over already, that is what was asked for.
    with suppress(MissingRights):
        logged_in(folder, clock).call("DELETE", "/v1/session", Ended)
    if login.private_key is None:
        (folder / FILE).unlink()
    else:
        _replace(folder, msgspec.structs.replace(login, session=None))


def logged_in(folder: Path, clock: Clock) -> Service:
    """Return the service, with the identity that logged in.

    Raises:
        BadInput: there is no login, or the file is invalid.
    """
    login = _read(folder)
    return Service(login.service, login.identity, clock, session=login.session or "")


def pinned_at_login(folder: Path) -> Sequence[InstructionKey]:
    """Return the public keys of instructions that the service named when somebody logged in.

    Raises:
        BadInput: as above.
    """
    enrolled = _read(folder).enrolled
    return enrolled.instruction_keys if enrolled is not None else ()


def _read(folder: Path) -> Login:
    file = folder / FILE
    try:
        return decode(file.read_bytes(), Login)
    except FileNotFoundError:
        raise BadInput("you are not logged in: run `plimsoll login URL`") from None
    except Malformed as error:
        raise BadInput(f"{file} is invalid: {error}; log in again") from error


def _begun_key(file: Path, url: str) -> bytes:
    """Return the key of a login that was begun at the same service, else a new one."""
    with suppress(FileNotFoundError, Malformed):
        begun = decode(file.read_bytes(), Login)
        if begun.service == url and begun.private_key is not None:
            return begun.private_key
    return Ed25519PrivateKey.generate().private_bytes_raw()


def _replace(folder: Path, login: Login) -> None:
    new = folder / f"{FILE}.new"
    _write(new, login)
    new.replace(folder / FILE)


def _write(file: Path, login: Login) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.touch(mode=0o600, exist_ok=False)
    file.write_bytes(encode(login))
