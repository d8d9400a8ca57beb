"""GPU models and their slices."""

from __future__ import annotations

import pytest

from plimsoll_service.domain.gpu.cards import CARDS
from plimsoll_service.wire.gpu import model_of


@pytest.mark.parametrize(
    "product",
    [
        "NVIDIA-H100-80GB-HBM3",
        "NVIDIA H100 80GB HBM3",
        "NVIDIA-H100-80GB-HBM3-SHARED",
        "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
        "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.shared",
        "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb+me",
        "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb+me-SHARED",
    ],
)
def test_a_product_is_one_model_however_it_is_shared_or_split(product: str) -> None:
    assert model_of(product) == "H100-80GB-HBM3"


def test_a_product_that_nobody_knows_keeps_its_name() -> None:
    assert model_of("Quadro-RTX-SHARED-EDITION") == "Quadro-RTX-SHARED-EDITION"


@pytest.mark.parametrize("model", CARDS)
def test_no_slice_gives_more_than_its_name_says_nor_than_its_share_of_the_card(model: str) -> None:
    card = CARDS[model]
    for name, profile in card.profiles.items():
        nominal_mib = int(name.split(".")[1].removesuffix("gb")) * 1024
        assert profile.usable_mib <= nominal_mib
        assert profile.usable_mib * (card.memory // profile.memory) <= card.memory_mib
        assert all(start + profile.memory <= card.memory for start in profile.starts)
