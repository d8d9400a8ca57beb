"""The page of the costs agrees with the counts, the prices and the template."""

from __future__ import annotations

from benchmarks.bill.service import of_the_stack
from benchmarks.bill.tables import prices, tables
from tests.package.template import ROOT, resources

PAGE = (ROOT / "docs" / "operate" / "cost.md").read_text(encoding="utf-8")


def test_the_costs_on_the_page_are_those_of_the_counts_the_prices_and_the_template():
    for table in "\n".join(tables()).split("\n\n"):
        assert table in PAGE, table


def test_the_cost_of_the_optimizer_without_clusters_on_the_page_is_that_of_a_stack_with_one_key():
    assert f"a key, a secret and empty queues of the stack cost {of_the_stack():.2f} more" in (
        " ".join(PAGE.split())
    )


def test_the_cost_of_the_waf_on_the_page_is_that_of_its_rules():
    [acl] = resources("AWS::WAFv2::WebACL", "service.yaml").values()
    rules, price = len(acl["Properties"]["Rules"]), prices()
    month = price["WAF web ACL"] + rules * price["WAF rule"]
    said = f"costs {month:.2f}, and {1e6 * price['WAF request']:.2f} for a million requests"
    assert said in " ".join(PAGE.split())
