"""The optimizer: does the service hear its agents, and is what was decided carried out?"""

from __future__ import annotations

from typing import Final

import yaml
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard

from infra.grafana.alarms import ROOT
from infra.grafana.boards import board
from infra.grafana.panels import Scale, alarms, metric, number, panel, samples
from plimsoll_service.domain.metrics import ServiceMetric
from plimsoll_service.services.recommendations import FRESH

_MIB: Final = 1024 * 1024
_OF: Final = '{cluster=~"$cluster"}'


def _now(name: str) -> str:
    return f"max by (cluster) (plimsoll_agent_{name}{_OF})"


def _increase(name: str, *labels: str) -> str:
    return _sum(f"increase(plimsoll_agent_{name}_total{_OF}[$__rate_interval])", *labels)


def _per_minute(name: str, *labels: str) -> str:
    return "60 * " + _sum(f"rate(plimsoll_agent_{name}_total{_OF}[$__rate_interval])", *labels)


def _sum(expression: str, *labels: str) -> str:
    return f"sum by ({', '.join(['cluster', *labels])}) ({expression})"


def _of_the_process(expression: str) -> str:
    """Return a metric that each process has, of the agents alone."""
    return (
        f"max by (cluster) ({expression} and on (job, instance) plimsoll_agent_spooled_bytes{_OF})"
    )


def make() -> Dashboard:
    """Return the board."""
    spool_bytes, memory_bytes = _limits()
    fresh_seconds = FRESH.total_seconds()
    sent = f"max by (cluster) (plimsoll_agent_last_sent_timestamp_seconds{_OF}) > 0"
    missing = f"{_now('gpu_exporters_asked')} - {_now('gpu_exporters_answered')}"
    return board(
        "agent",
        "Whether the optimizer hears its agents, works in what they send, and has its decisions "
        "carried out. The agents' metrics are those of their own port.",
        {
            "Does the service hear its agents?": [
                panel(
                    "How old is the last snapshot that the service took?",
                    [samples(f"time() - ({sent})", "{{cluster}}")],
                    f"After {fresh_seconds:.0f} s the service makes no instruction of it.",
                    Scale(units.Seconds, fresh_seconds),
                ),
                alarms("How many agents are silent?", "AgentsSilent"),
                panel(
                    "How full is the spool?",
                    [samples(_now("spooled_bytes"), "{{cluster}}")],
                    "Snapshots wait here while the service is away. A full spool drops the oldest.",
                    Scale(units.BytesIEC, spool_bytes),
                ),
                panel(
                    "Which snapshots were given up, and why?",
                    [samples(_increase("snapshots_dropped", "why"), "{{cluster}} {{why}}")],
                    "A later snapshot says what stands then; the time between is lost.",
                    Scale(limit=1),
                ),
                panel(
                    "What fails and is tried again?",
                    [samples(_increase("failures", "what"), "{{cluster}} {{what}}")],
                    "The log of the agent has the error.",
                ),
                panel(
                    "How many snapshots wait?",
                    [samples(_now("spooled_snapshots"), "{{cluster}}")],
                    "Taken, and not yet sent.",
                ),
            ],
            "Does the service work in what it took?": [
                alarms("How long has the oldest work waited?", "ArrivalsWaiting", "AdviceWaiting"),
                number("How many snapshots could not be worked in?", "ArrivalsDead", width=4),
                number("How often did advice fail twice?", "AdviceDead", width=4),
                alarms("Does the API answer with faults?", "ApiFaults"),
                alarms(
                    "Which functions crash or time out?",
                    "MetricsErrors",
                    "AdviceErrors",
                    "AdviceScheduleErrors",
                ),
                panel(
                    "How many snapshots make no whole one?",
                    [metric(ServiceMetric.SNAPSHOTS_REFUSED, "Sum", label="refused")],
                    "Their agent never sent their base, or made too much of it.",
                ),
            ],
            "Is what was decided carried out?": [
                panel(
                    "What became of instructions?",
                    [
                        samples(
                            _increase("instructions", "kind", "outcome"),
                            "{{cluster}} {{kind}}: {{outcome}}",
                        )
                    ],
                    "Each is answered once, with its outcome.",
                ),
                panel(
                    "How many nodes wait for a person after a change of their GPUs?",
                    [samples(_now("gpu_alerts"), "{{cluster}}")],
                    "They stay cordoned until somebody looks.",
                    Scale(limit=1),
                ),
                panel(
                    "Which GPUs does the agent not see?",
                    [
                        samples(missing, "{{cluster}} silent exporters"),
                        samples(_now("gpus_left_out"), "{{cluster}} GPUs left out"),
                    ],
                    "Exporters that did not answer, and GPUs beyond the limit of a snapshot.",
                    Scale(limit=1),
                ),
            ],
            "What does an agent use?": [
                panel(
                    "How near is its memory to the limit?",
                    [samples(_of_the_process("process_resident_memory_bytes"), "{{cluster}}")],
                    "Beyond it the kernel kills the agent.",
                    Scale(units.BytesIEC, memory_bytes),
                ),
                panel(
                    "How many processors does it use?",
                    [
                        samples(
                            _of_the_process("rate(process_cpu_seconds_total[$__rate_interval])"),
                            "{{cluster}}",
                        )
                    ],
                    "Seconds of a processor in each second.",
                ),
                panel(
                    "How many snapshots a minute does it take and send?",
                    [
                        samples(_per_minute("snapshots_taken", "kind"), "{{cluster}} {{kind}}"),
                        samples(_per_minute("snapshots_sent"), "{{cluster}} sent"),
                    ],
                    "Taken, by kind, and those that the service took.",
                ),
                panel(
                    "How many bytes a minute does it make?",
                    [samples(_per_minute("snapshot_bytes", "kind"), "{{cluster}} {{kind}}")],
                    "Compressed snapshots, by kind.",
                    Scale(units.BytesIEC),
                ),
            ],
        },
        stack="plimsoll-service",
        clusters_of="plimsoll_agent_spooled_bytes",
    )


def _limits() -> tuple[int, int]:
    """Return the bytes of its spool and of its memory that the manifest gives to an agent."""
    file = ROOT / "agent/plimsoll_agent/manifests/deployment.yaml"
    (container,) = yaml.safe_load(file.read_text("utf-8"))["spec"]["template"]["spec"]["containers"]
    given = {each["name"]: each.get("value") for each in container["env"]}
    memory = container["resources"]["limits"]["memory"].removesuffix("Mi")
    return int(given["PLIMSOLL_SPOOL_MIB"]) * _MIB, int(memory) * _MIB
