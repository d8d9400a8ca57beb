"""infra/reports.yaml: what its role may."""

from __future__ import annotations

from typing import Any

from tests.package.template import listed, template

ROLE = template("infra/reports.yaml")["Resources"]["Role"]["Properties"]
STATEMENTS: list[dict[str, Any]] = ROLE["Policies"][0]["PolicyDocument"]["Statement"]


def test_it_reads_reports_and_names_of_clusters_and_nothing_else():
    may = {a: s["Resource"]["Fn::Sub"] for s in STATEMENTS for a in listed(s["Action"])}
    assert {action: resource.rpartition(":")[2] for action, resource in may.items()} == {
        "cloudformation:DescribeStacks": "stack/${Stack}/*",
        "dynamodb:Query": "table/${Stack}-ReportsTable-*/index/newest",
        "dynamodb:Scan": "table/${Stack}-ClustersTable-*",
    }
    [names] = [s for s in STATEMENTS if s["Action"] == "dynamodb:Scan"]
    assert names["Condition"] == {
        "ForAllValues:StringEquals": {"dynamodb:Attributes": ["cluster"]},
        "StringEquals": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"},
    }


def test_it_is_assumed_by_one_role_and_with_an_external_id():
    [trust] = ROLE["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"AWS": {"Ref": "People"}}
    assert trust["Condition"] == {"StringEquals": {"sts:ExternalId": {"Ref": "ExternalId"}}}
