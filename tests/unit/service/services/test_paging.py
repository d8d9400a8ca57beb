"""Pages of a list, one after another, hold each row once; what no page was told as is refused."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll_service.services.paging import (
    MOST_PAGE_ROWS,
    MOST_ROWS_READ,
    Filter,
    PageRequest,
    after_of,
    cut,
    documents_of,
    page_request,
    query_schemas,
)
from plimsoll_service.wire.documents import Malformed
from plimsoll_simulation.fake_aws.service_stores import MemoryTenantData

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
FILTERS = {
    "state": Filter(description="its state", values=("open", "done")),
    "by": Filter(description="who did it"),
}


class Clock:
    def now(self) -> datetime:
        return NOW


def read_to_the_end(
    keys: list[str], limit: int, *, keep: str = "", descending: bool = False
) -> list[str]:
    found, asked = list[str](), PageRequest(limit=limit)
    ordered = sorted(keys, reverse=descending)
    while True:
        page = cut(ordered, asked, key=str, keep=lambda each: keep in each, descending=descending)
        assert len(page.items) <= limit
        found += page.items
        if page.next is None:
            return found
        query = {"after": page.next, "limit": str(limit)}
        asked = page_request(query, prefix="k#", filters={})


@given(
    names=st.sets(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), max_size=40),
    limit=st.integers(1, 9),
    keep=st.sampled_from(["", "a", "0"]),
    descending=st.booleans(),
)
def test_pages_hold_each_row_once_and_in_order(
    *, names: set[str], limit: int, keep: str, descending: bool
):
    keys = [f"k#{name}" for name in names]
    found = read_to_the_end(keys, limit, keep=keep, descending=descending)
    assert found == sorted((key for key in keys if keep in key), reverse=descending)


def test_a_row_that_is_gone_or_new_meanwhile_moves_no_other():
    first = cut(["k#1", "k#3", "k#5"], PageRequest(limit=2), key=str)
    asked = page_request({"after": first.next or ""}, prefix="k#", filters={})
    assert cut(["k#1", "k#2", "k#4", "k#5"], asked, key=str).items == ("k#4", "k#5")


def test_the_last_page_says_that_nothing_follows_though_it_is_full():
    assert cut(["k#1", "k#2"], PageRequest(limit=2), key=str).next is None
    assert cut([], PageRequest(), key=str).next is None


def test_a_filter_that_fits_nothing_ends_a_page_after_so_many_rows_and_says_where_to_read_on():
    keys = (f"k#{n:05}" for n in range(10**5))
    page = cut(keys, PageRequest(), key=str, keep=lambda _: False)
    assert (page.items, page.next) == ((), after_of(f"k#{MOST_ROWS_READ - 1:05}"))
    assert next(keys) == f"k#{MOST_ROWS_READ + 1:05}", "no row beyond it is read"


def test_no_more_rows_are_read_than_a_page_and_one_to_see_that_another_follows():
    keys = (f"k#{n:05}" for n in range(10**5))
    page = cut(keys, PageRequest(limit=3), key=str)
    assert (page.items, next(keys)) == (("k#00000", "k#00001", "k#00002"), "k#00004")


@pytest.mark.parametrize("descending", [False, True], ids=["forwards", "backwards"])
def test_documents_are_read_from_after_on(*, descending: bool):
    data = MemoryTenantData(Clock())
    for key in ("j#9", "k#1", "k#2", "k#3", "k#4", "l#1"):
        data.put("c", key, b"1", expires=NOW + timedelta(days=1))
    asked, found, after = PageRequest(limit=3), list[str](), None
    for _ in range(2):
        listed = documents_of(data, "c", "k#", asked, descending=descending)
        page = cut(listed, asked, key=lambda each: each.key, descending=descending)
        found += [each.key for each in page.items]
        after = page.next
        if after is not None:
            asked = page_request({"after": after, "limit": "3"}, prefix="k#", filters={})
    assert after is None
    assert found == sorted(["k#1", "k#2", "k#3", "k#4"], reverse=descending)


@pytest.mark.parametrize("limit", ["0", "201", "-1", "1.5", "", "a", "٣", "1e2", " 5", "0" * 999])
def test_a_limit_that_is_none_is_refused(limit: str):
    with pytest.raises(Malformed, match="limit is a number from 1 to 200"):
        page_request({"limit": limit}, prefix="k#", filters={})


def test_a_limit_is_50_unless_it_is_given():
    assert page_request({}, prefix="k#", filters={}).limit == 50
    assert page_request({"limit": "200"}, prefix="k#", filters={}).limit == MOST_PAGE_ROWS


@pytest.mark.parametrize(
    "after",
    [
        "",
        "é",
        "k#1",
        "a",  # no base64 has this length
        after_of("other#1"),
        after_of("k"),
        base64.urlsafe_b64encode(b"k#\xff").decode().rstrip("="),
        base64.urlsafe_b64encode(b"k#1a").decode(),  # padded
        "ayMx\n",
        "ayN=",
        "ayO",  # decodes to the bytes of another text
        after_of("k#" + "x" * 2000),
    ],
)
def test_an_after_that_no_page_of_the_list_gave_is_refused(after: str):
    with pytest.raises(Malformed, match="give `next` of the page before"):
        page_request({"after": after}, prefix="k#", filters={})


@given(
    after=st.text(max_size=40)
    | st.binary(max_size=40).map(lambda raw: base64.urlsafe_b64encode(raw).decode())
)
def test_whatever_stands_in_after_is_refused_or_a_key_of_the_list(after: str):
    try:
        asked = page_request({"after": after}, prefix="k#", filters={})
    except Malformed:
        return
    assert asked.after.startswith("k#")


def test_filters_are_those_that_the_list_names():
    query = {"state": "open", "by": "ann@acme"}
    asked = page_request(query, prefix="k#", filters=FILTERS)
    assert asked.filters == query
    for wrong in ({"state": "lost"}, {"by": ""}, {"by": "a b"}, {"by": "x" * 200}, {"sort": "by"}):
        with pytest.raises(Malformed):
            page_request(wrong, prefix="k#", filters=FILTERS)


def test_what_the_description_says_of_parameters_is_what_they_take():
    said = query_schemas(FILTERS)
    assert list(said) == ["limit", "after", "state", "by"]
    assert said["state"]["enum"] == ["open", "done"]
    assert (said["limit"]["default"], said["limit"]["maximum"]) == (50, 200)


def test_of_a_list_without_end_pages_are_read_one_at_a_time():
    endless = (f"k#{n:09}" for n in range(10**9))
    assert len(cut(islice(endless, 10**6), PageRequest(limit=200), key=str).items) == 200
