"""GPUs: which are idle, which slice a workload needs, and how a fleet is best split."""

from __future__ import annotations

from plimsoll_service.domain.gpu.cards import CARDS, Card, Profile, model_of

__all__ = ["CARDS", "Card", "Profile", "model_of"]
