"""Prices by AWS's own word, in the shapes that its API has; and the shipped table in their place."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

import boto3
import pytest
from botocore.stub import ANY, Stubber

from plimsoll.domain.errors import PlimsollError
from plimsoll_service.adapters import price_list
from plimsoll_service.adapters.price_list import AwsPrices
from plimsoll_service.adapters.price_table import price_table
from tests.support.cli_environment import StillClock


def client(service: Literal["pricing", "ec2"]) -> tuple[Any, Stubber]:
    session: Any = boto3.Session("testing", "testing", region_name="us-east-1")
    made = session.client(service)
    stubber = Stubber(made)
    stubber.activate()
    return made, stubber


def product(name: str, price: str, unit: str = "Hrs") -> str:
    dimension = {"unit": unit, "pricePerUnit": {"USD": price}}
    terms = {"OnDemand": {"SKU.TERM": {"priceDimensions": {"SKU.TERM.RATE": dimension}}}}
    return json.dumps({"product": {"attributes": {"instanceType": name}}, "terms": terms})


def spot(name: str, zone: str, price: str) -> dict[str, str]:
    return {"InstanceType": name, "AvailabilityZone": zone, "SpotPrice": price}


@dataclass
class Reading:
    """An account whose price list and spot prices are as a test says."""

    clock: StillClock = field(default_factory=StillClock)
    warned: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pricing, self.asked = client("pricing")
        self.ec2, self.bid = client("ec2")
        self.prices = AwsPrices(
            pricing=lambda: self.pricing,
            ec2=lambda _region: self.ec2,
            shipped=price_table(),
            clock=self.clock,
            warn=self.warn,
        )

    def warn(self, region: str, error: PlimsollError) -> None:
        self.warned.append(f"{region}: {type(error).__name__}")

    def answer(self, *products: str, spot: list[dict[str, str]]) -> None:
        wanted = {"ServiceCode": "AmazonEC2", "Filters": ANY}
        self.asked.add_response("get_products", {"PriceList": list(products[:1]), "NextToken": "2"})
        self.asked.add_response(
            "get_products", {"PriceList": list(products[1:])}, wanted | {"NextToken": "2"}
        )
        self.bid.add_response("describe_spot_price_history", {"SpotPriceHistory": spot})


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Reading:
    monkeypatch.setattr(price_list, "_LEAST", 2)
    return Reading()


def test_prices_are_of_the_region_and_of_the_day(account):
    account.answer(
        product("m5.large", "0.107"),
        product("c5.large", "0.096"),
        product("c5.large", "0"),  # a reservation that is paid for
        product("c5.large", "9", "Quantity"),
        spot=[
            spot("m5.large", "eu-west-1a", "0.03"),
            spot("m5.large", "eu-west-1b", "0.05"),
            spot("r5.large", "eu-west-1a", "0.01"),
        ],
    )
    found = account.prices.of("eu-west-1")
    assert found.region == "eu-west-1"
    assert "2026" in found.dates
    assert found.prices.keys() == {"m5.large", "c5.large"}
    assert found.prices["m5.large"].on_demand == 0.107
    assert found.prices["m5.large"].spot == pytest.approx(0.04)
    assert found.prices["c5.large"].spot == 0.096  # not to be had: it saves nothing
    assert found.sizes == price_table().sizes


def test_a_region_is_asked_once_in_half_a_day(account):
    account.answer(product("m5.large", "1"), product("c5.large", "1"), spot=[])
    first = account.prices.of("eu-west-1")
    account.clock.sleep(timedelta(hours=11).total_seconds())
    assert account.prices.of("eu-west-1") is first


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException"])
def test_where_aws_may_not_be_asked_the_shipped_table_stands_in(account, code):
    account.asked.add_client_error("get_products", code, http_status_code=400)
    assert account.prices.of("eu-west-1") is price_table()
    assert account.prices.of("eu-west-1") is price_table()  # not asked again at once
    assert len(account.warned) == 1
    account.clock.sleep(timedelta(minutes=16).total_seconds())
    account.answer(product("m5.large", "1"), product("c5.large", "1"), spot=[])
    assert account.prices.of("eu-west-1").region == "eu-west-1"


def test_a_price_list_that_is_cut_off_is_not_believed(account):
    account.asked.add_response("get_products", {"PriceList": [product("m5.large", "1")]})
    assert account.prices.of("eu-west-1") is price_table()
    assert account.warned == ["eu-west-1: Temporary"]


def test_prices_that_were_read_stand_until_they_can_be_read_again(account):
    account.answer(product("m5.large", "1"), product("c5.large", "1"), spot=[])
    first = account.prices.of("eu-west-1")
    account.clock.sleep(timedelta(hours=13).total_seconds())
    account.asked.add_client_error("get_products", "AccessDeniedException", http_status_code=400)
    assert account.prices.of("eu-west-1") is first


def test_without_a_region_nobody_is_asked(account):
    assert account.prices.of(None) is price_table()
