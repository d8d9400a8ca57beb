"""The storms that Hypothesis draws: the same drawing code as for seeds, driven by Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from plimsoll_testbed.storms import Storm, storm_by


@st.composite
def storms(draw: st.DrawFn, *, small: bool = True) -> Storm:
    """Draw a whole storm."""
    rnd = draw(st.randoms(use_true_random=False))
    return storm_by(rnd, seed=draw(st.integers(0, 999)), small=small)
