"""The objects of one kind as a plan reads them: listed page by page, and then kept up to date by a watch.

Tenants write these objects. What cannot be read is left out, named and counted: one odd object must
not stop the drain of a cluster.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Raw

from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.decoding import asked_to_go, event_of, version_of
from plimsoll.adapters.kubernetes.requests import ExpiredError, Json, Requests, again_if_expired
from plimsoll.adapters.kubernetes.transport import Events
from plimsoll.domain.errors import BadInput

WATCH_SECONDS: Final = 15
"""How long a watch is asked to last. Then it is resumed where it stands, by one request."""
OVERDUE: Final = timedelta(seconds=5)
"""So long after it should have ended a watch is given up: its connection is dead. No plan is older."""


class Collection[T]:
    """All objects of one kind that pass a field selector and a label selector."""

    def __init__(
        self,
        call: Call,
        parse: Callable[[Json | Raw], T],
        *,
        fields: str | None = None,
        labels: str | None = None,
    ) -> None:
        """Begin with none.

        Args:
            call: Lists them.
            parse: Reads one; raises BadInput, and nothing else, where that cannot be done.
            fields: The field selector of the list.
            labels: Its label selector.
        """
        self._call = call
        self._fields = fields
        self._labels = labels
        self._parse = parse
        self._known: dict[Hashable, tuple[str, T | BadInput]] = {}
        """By UID: the version of an object, and what was made of it."""
        self._ended: set[str] = set()
        """UIDs of objects that left the selection, and were not deleted."""
        self._revision = ""
        """Up to which all changes are known; empty where only a list can tell."""
        self._events: Events | None = None
        self._over = False
        """Whether the watch has told all it ever will."""
        self._silent = datetime.max.replace(tzinfo=UTC)
        self.watchable = True
        """Set to False where a watch was refused: then it is listed each time."""

    @property
    def objects(self) -> Sequence[T]:
        """What could be read."""
        return [made for _, made in self._known.values() if not isinstance(made, BadInput)]

    def ended(self) -> frozenset[str]:
        """Return the UIDs of objects that a watch saw leave the selection undeleted, and forget them."""
        found, self._ended = frozenset(self._ended), set()
        return found

    @property
    def left_out(self) -> Sequence[str]:
        """Why objects were left out."""
        return [str(made) for _, made in self._known.values() if isinstance(made, BadInput)]

    @property
    def watched(self) -> bool:
        """Whether a watch keeps it up to date."""
        return self._events is not None

    @property
    def resumable(self) -> bool:
        """Whether a watch could go on from what is known."""
        return self.watchable and (self._over or not self.watched) and bool(self._revision)

    def list(self, requests: Requests, warn: Callable[[str], None]) -> Sequence[T]:
        """Read a whole list, and forget what is no longer in it.

        Raises:
            PlimsollError: see `plimsoll.adapters.kubernetes.errors`.
        """
        self.close()
        known = self._known

        def read() -> tuple[str, dict[Hashable, tuple[str, T | BadInput]]]:
            revision, now = "", dict[Hashable, tuple[str, T | BadInput]]()
            for page in requests.pages(self._call, fields=self._fields, labels=self._labels):
                # All pages show the same moment, and the watch starts there.
                # https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
                revision = revision or page.metadata.resource_version
                for obj in page.items or ():
                    uid, version = version_of(obj)
                    before = known.get(uid)
                    made = before if before and before[0] == version else None
                    now[uid or object()] = made or (version, self._read(obj, warn))
            return revision, now

        # Replaced only when all pages are read: if a page fails, the known objects stay.
        self._revision, self._known = again_if_expired(read)
        return self.objects

    def forget(self) -> Sequence[T]:
        """Know none, and return none."""
        self.close()
        self._known, self._revision = {}, ""
        return ()

    def watch(self, requests: Requests, now: datetime, *, seconds: int = WATCH_SECONDS) -> None:
        """Ask for all changes since what is known; `take` takes them in.

        Args:
            requests: Makes the call.
            now: The time.
            seconds: How long the watch is asked to last.

        Raises:
            PlimsollError: see `plimsoll.adapters.kubernetes.errors`.
        """
        self.close()
        try:
            self._events = requests.watch(
                self._call,
                fields=self._fields,
                labels=self._labels,
                revision=self._revision,
                seconds=seconds,
            )
            self._silent = now + timedelta(seconds=seconds) + OVERDUE
        # The API server keeps old versions for minutes only. Without a revision, the next observation lists again.
        except ExpiredError:
            self._revision = ""

    def take(self, now: datetime, warn: Callable[[str], None]) -> None:
        """Take in what the watch has told since the last time, if there is one; it never waits.

        A watch that is over stays until it is resumed: it was up to date a moment ago.
        """
        if self._events is None:
            return
        # asked first: nothing comes after that
        self._over = self._events.over or now >= self._silent
        newest: dict[str, tuple[str, Json | Raw]] = {}  # in a storm an object changes several times
        for line in self._events.take():
            kind, obj = event_of(line)
            uid, version = version_of(obj)
            match kind:
                case "BOOKMARK":
                    pass
                case "DELETED":
                    # An earlier change in the same lines must not bring the object back.
                    newest.pop(uid, None)
                    if self._known.pop(uid, None) is not None and not asked_to_go(obj):
                        self._ended.add(uid)
                case "ADDED" | "MODIFIED" if uid:
                    newest[uid] = version, obj
                case _:  # most often 410: what changed meanwhile is no longer kept
                    self._revision = ""
                    break
            # Bookmarks count as well: they let a quiet watch resume where it stands.
            self._revision = version or self._revision
        # After the last line: only the newest version of an object is parsed.
        for uid, (version, obj) in newest.items():
            self._put(uid, version, obj, warn)
        if not self._revision:
            self.close()

    def wrote(self, obj: Json) -> None:
        """Take in the answer to a write of ours: its event may come after the next plan."""
        uid, version = version_of(obj)
        if uid in self._known:
            self._put(uid, version, obj, lambda _: None)

    def close(self) -> None:
        """End the watch, if there is one."""
        if self._events is not None:
            self._events.close()
        self._events, self._over = None, False

    def _put(self, uid: str, version: str, obj: Json | Raw, warn: Callable[[str], None]) -> None:
        known = self._known.get(uid)
        # The answer to our own write may be newer than events that arrive after it.
        if known is None or _age(known[0]) < _age(version):
            self._known[uid] = version, self._read(obj, warn)

    def _read(self, obj: Json | Raw, warn: Callable[[str], None]) -> T | BadInput:
        try:
            return self._parse(obj)
        except BadInput as error:
            warn(f"left out: {error}")
            return error


def _age(version: str) -> tuple[int, str]:
    """Order resourceVersions of one kind as numbers, which they are.

    https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
    """
    return len(version), version
