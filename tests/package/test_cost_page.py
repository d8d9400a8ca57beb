"""The page of the costs agrees with the counts, the prices and the template."""

from __future__ import annotations

import csv
import json
import re

import pytest

from benchmarks.bill.tables import COUNTS, TOGETHER, bill, prices, tables
from tests.package.template import ROOT, resources

PAGE = (ROOT / "docs" / "operate" / "cost.md").read_text(encoding="utf-8")


def test_the_costs_on_the_page_are_those_of_the_counts_the_prices_and_the_template():
    for table in "\n".join(tables()).split("\n\n"):
        assert table in PAGE, table


def test_the_cost_of_the_waf_on_the_page_is_that_of_its_rules():
    [acl] = resources("AWS::WAFv2::WebACL", "service.yaml").values()
    rules, price = len(acl["Properties"]["Rules"]), prices()
    month = price["WAF web ACL"] + rules * price["WAF rule"]
    said = f"costs {month:.2f}, and {1e6 * price['WAF request']:.2f} for a million requests"
    assert said in " ".join(PAGE.split())


def test_every_price_says_when_and_where_it_was_noted():
    with (ROOT / "benchmarks/bill/prices.csv").open(encoding="utf-8") as file:
        for price in csv.DictReader(file):
            assert re.fullmatch(r"20\d\d-[01]\d", price["noted"]), price
            assert price["page"].startswith("https://aws.amazon.com/"), price


def test_a_bill_grows_with_the_clusters_and_with_the_way_out_of_a_network():
    counts = json.loads(COUNTS.read_text(encoding="utf-8"))
    one, ten, network = bill(1, counts), bill(10, counts), bill(10, counts, ["AWS"])
    assert ten["tables"] > 5 * one["tables"]
    assert ten["resyncs"] < 10 * one["resyncs"], "a schedule starts one run for all of them"
    way_out = network["NAT gateway"] + network["traffic through it"]
    assert network[TOGETHER] == pytest.approx(ten[TOGETHER] + way_out)
