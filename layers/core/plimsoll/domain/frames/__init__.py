"""Frames: a storm at one instant, bounded, for whoever watches or replays it."""

from __future__ import annotations

from plimsoll.domain.frames.frame import Frame, NodeFrame, WorkloadFrame
from plimsoll.domain.frames.frame_builder import frame_of
from plimsoll.domain.frames.storm_messages import is_storm, storm_message

__all__ = ["Frame", "NodeFrame", "WorkloadFrame", "frame_of", "is_storm", "storm_message"]
