"""Annotations by which pods say how they behave in drills."""

from __future__ import annotations

STARTUP = "drill.plimsoll.dev/startup"
"""On a pod, annotation: how long it takes to be Ready: `45s`."""
STOP = "drill.plimsoll.dev/stop"
"""On a pod, annotation: how long it takes to stop; past its grace period it gets SIGKILL."""
NEVER_READY = "drill.plimsoll.dev/never-ready"
"""On a pod, annotation: it never becomes Ready when "true"."""
RUN = "drill.plimsoll.dev/run"
"""On a pod that is not always restarted, annotation: how long it is Ready before it has succeeded."""
USAGE = "drill.plimsoll.dev/usage"
"""On a pod, annotation: the share of its CPU request that it uses, as an autoscaler is told it: `70%`."""
RESIZE = "drill.plimsoll.dev/resize"
"""On a pod, annotation: the CPU request to which the controller vpa resizes its first container in place: `700m`."""
