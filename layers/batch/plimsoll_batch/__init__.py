"""Plimsoll's batch queues: which suspended gangs start now, on which nodes, and which make way for them.

A stack of its own: it shares code with the interruption path, and neither roles nor concurrency. Nothing
of the interruption path imports it.
"""
