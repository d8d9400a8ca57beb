"""Quantities as Kubernetes writes them, and bundles of them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import Resources, parse_quantity


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", "0"),
        ("500m", "0.5"),
        ("2", "2"),
        ("1.5Gi", str(3 << 29)),
        ("128974848", "128974848"),
        ("129e6", "129000000"),
        ("129M", "129000000"),
        ("123Mi", str(123 << 20)),
        ("1E", "1000000000000000000"),
        ("1e3", "1000"),
        ("2E2", "200"),
        (".5k", "500"),
        ("5.", "5"),
        ("+1Ki", "1024"),
        ("-1", "-1"),
        ("100n", "0.0000001"),
        ("7u", "0.000007"),
    ],
)
def test_reads_every_form(text, amount):
    assert parse_quantity(text) == Decimal(amount)


@pytest.mark.parametrize(
    "text", ["", "lots", "1 Gi", "1GB", "1ki", "Gi", "1.2.3", "0x10", "1e", "m"]
)
def test_refuses_what_is_no_quantity_and_shows_what_is(text):
    with pytest.raises(BadInput, match="500m"):
        parse_quantity(text)


def test_reads_a_resource_list_in_whole_units_rounded_up():
    found = Resources.parse({"cpu": "100.5m", "memory": "1.5", "nvidia.com/gpu": 1}, pods=1)
    assert found == Resources(cpu=101, memory=2, pods=1, extended=(("nvidia.com/gpu", 1),))
    assert Resources.parse({"pods": "58"}, pods=1).pods == 58


def test_what_is_not_asked_for_is_not_compared():
    headroom = Resources(cpu=1000, memory=10, pods=1)
    assert Resources(cpu=1000, memory=10, pods=1).within(headroom)
    assert Resources(extended=(("gpu", 0),)).within(headroom)
    assert not Resources(extended=(("gpu", 1),)).within(headroom)
    assert not Resources(cpu=1001).within(headroom)


bundles = st.builds(
    Resources,
    cpu=st.integers(0, 10_000),
    memory=st.integers(0, 1 << 40),
    pods=st.integers(0, 100),
    extended=st.dictionaries(st.sampled_from(["gpu", "disk"]), st.integers(0, 8)).map(
        lambda amounts: tuple(sorted(amounts.items()))
    ),
)


def extended(bundle: Resources) -> dict[str, int]:
    return {name: amount for name, amount in bundle.extended if amount}


@given(bundles, bundles)
def test_what_is_taken_and_given_back_changes_nothing(one, other):
    back = one + other - other
    assert (back.cpu, back.memory, back.pods) == (one.cpu, one.memory, one.pods)
    assert extended(back) == extended(one)


@given(bundles, bundles)
def test_a_bundle_fits_into_itself_and_more(one, other):
    assert one.within(one)
    assert one.within(one + other)
