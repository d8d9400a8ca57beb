"""Rehearsal: a live cluster as a scenario, and what an interruption of it would cost.

The cluster is read once and never written. What it shows becomes a drill for the simulated rig, so
what is predicted is what Plimsoll itself does there, and not what a second policy would.
"""
