"""Our types as DynamoDB items, and back.

Times are ISO 8601 in UTC with microseconds, so that they sort as text. A report is one JSON
document in its item: nobody queries its inside, and it is read and written whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from plimsoll.domain.interruptions import MaintenanceWindow, Policy, Response
from plimsoll.domain.kubernetes import Ref, Resources
from plimsoll.domain.observation import TIMES_KEPT, Count, Sample, Samples
from plimsoll.domain.registry import Cluster, ClusterKind, IndexEntry, Mode
from plimsoll.domain.reports import Reason, Report, Score, WorkloadScore

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from mypy_boto3_dynamodb.type_defs import UniversalAttributeValueTypeDef as Value

type Item = dict[str, Value]

TTL: Final = "expires"
"""The attribute that DynamoDB deletes an item by, in epoch seconds."""
KEEP_NODES: Final = timedelta(days=1)
"""How long an index entry outlives the last time that the resync saw its node."""
KEEP_REPORTS: Final = timedelta(days=90)
KEEP_SCORES: Final = timedelta(days=400)
"""As long as a year can be compared with the one before."""

_TIMES: Final = (
    "noticed",
    "deadline",
    "cordoned",
    "capacity_asked",
    "replaced",
    "emptied",
    "gone",
    "closed",
)
_PARTS: Final = ("judged", "predicted", "observed")
"""Times of a score, in the order in which they are written."""
_SAMPLES: Final = ("stop", "killed", "start", "checkpoint")


def time_to_text(time: datetime) -> str:
    """Return a time as text that sorts."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def text_to_time(text: str) -> datetime:
    """Return what `time_to_text` wrote."""
    return datetime.fromisoformat(text)


def strings(**attributes: str | None) -> Item:
    """Return an item of strings; None is left out."""
    return {name: {"S": value} for name, value in attributes.items() if value is not None}


def _text(item: Mapping[str, Any], name: str) -> str | None:
    value: str | None = item.get(name, {}).get("S")
    return value


def _time(item: Mapping[str, Any], name: str) -> datetime | None:
    text = _text(item, name)
    return None if text is None else text_to_time(text)


def expiry(time: datetime) -> Value:
    """Return a value of the TTL attribute."""
    return {"N": str(int(time.timestamp()))}


def version_of(item: Mapping[str, Any] | None) -> int:
    """Return the version of an item as it was read; 0 where there is none."""
    return 0 if item is None or "version" not in item else int(item["version"]["N"])


def cluster_to_item(cluster: Cluster) -> Item:
    """Return a cluster as an item of the table `clusters`."""
    return strings(
        cluster=cluster.name,
        kind=cluster.kind,
        mode=cluster.mode,
        region=cluster.region,
        endpoint=cluster.endpoint,
        ca=cluster.ca,
        secret=cluster.secret,
        agent=cluster.agent,
        role=cluster.role,
        external_id=cluster.external_id,
        added=time_to_text(cluster.added),
        policy=json.dumps(asdict(cluster.policy)),
    )


def item_to_cluster(item: Mapping[str, Any]) -> Cluster:
    """Return what `cluster_to_item` wrote."""
    return Cluster(
        name=item["cluster"]["S"],
        kind=ClusterKind(item["kind"]["S"]),
        mode=Mode(item["mode"]["S"]),
        region=item["region"]["S"],
        endpoint=_text(item, "endpoint"),
        ca=_text(item, "ca"),
        secret=_text(item, "secret"),
        agent=_text(item, "agent"),
        role=_text(item, "role"),
        external_id=_text(item, "external_id"),
        added=text_to_time(item["added"]["S"]),
        policy=_policy(_text(item, "policy")),
    )


def _policy(text: str | None) -> Policy:
    """Return what is stored; clusters of an earlier version have none."""
    said = json.loads(text or "{}")
    window = said.get("window")
    return Policy(
        on=tuple((kind, _response(response)) for kind, response in said.get("on", ())),
        nodes_per_hour=said.get("nodes_per_hour"),
        moves_per_hour=said.get("moves_per_hour"),
        min_on_demand=said.get("min_on_demand", "0"),
        keep_ready=said.get("keep_ready", "0"),
        obeys_budgets=said.get("obeys_budgets", False),
        return_to_spot=said.get("return_to_spot", False),
        act_in=tuple(said.get("act_in", ())),
        window=window
        and MaintenanceWindow(
            **{**_known(MaintenanceWindow, window), "days": tuple(window["days"])}
        ),
    )


def _response(value: str) -> Response:
    """Return a response; one that a newer version added writes nothing, since its owner may not want more."""
    return Response(value) if value in list(Response) else Response.OBSERVE


def _known(kind: type[DataclassInstance], told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a class has.

    After a rollback rows hold fields that a newer version added. A row whose reading fails counts as absent: a
    cluster would be left alone, and a report would be written over.
    """
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in told.items() if name in names}


def entry_to_item(entry: IndexEntry) -> Item:
    """Return an entry as an item of the table `nodes`."""
    item = strings(
        instance=entry.instance,
        cluster=entry.cluster,
        node=entry.node,
        launched=time_to_text(entry.launched) if entry.launched else None,
        zone=entry.zone,
        instance_type=entry.instance_type,
        requests=json.dumps(asdict(entry.requests), separators=(",", ":")),
        seen=time_to_text(entry.seen),
    )
    return {**item, TTL: expiry(entry.seen + KEEP_NODES)}


def item_to_entry(item: Mapping[str, Any]) -> IndexEntry:
    """Return what `entry_to_item` wrote."""
    return IndexEntry(
        instance=item["instance"]["S"],
        cluster=item["cluster"]["S"],
        node=item["node"]["S"],
        launched=_time(item, "launched"),
        zone=_text(item, "zone"),
        instance_type=_text(item, "instance_type"),
        requests=_requests(_text(item, "requests")),
        seen=text_to_time(item["seen"]["S"]),
    )


def _requests(text: str | None) -> Resources:
    amounts = json.loads(text or "{}")
    extended = tuple((name, amount) for name, amount in amounts.pop("extended", ()))
    return Resources(**amounts, extended=extended)


def report_to_item(report: Report, stored: Mapping[str, Any] | None = None) -> Item:
    """Return a report as an item of the table `reports`; fields that a newer version added to what is stored stay."""
    document: dict[str, Any] = {} if stored is None else json.loads(stored["report"]["S"])
    document |= {f.name: getattr(report, f.name) for f in fields(report)}
    for name in _TIMES:
        time: datetime | None = document[name]
        document[name] = None if time is None else time_to_text(time)
    document["fell"] = {
        workload: {ready: time_to_text(at) for ready, at in times.items()}
        for workload, times in report.fell.items()
    }
    document["reasons"] = [_reason_to_data(reason) for reason in report.reasons]
    item = strings(
        cluster=report.cluster,
        interruption=report.interruption,
        noticed=time_to_text(report.noticed),
        report=json.dumps(document, default=dict, separators=(",", ":")),
    )
    return {**item, TTL: expiry(report.noticed + KEEP_REPORTS)}


def item_to_report(item: Mapping[str, Any]) -> Report:
    """Return what `report_to_item` wrote; fields that a newer version added are left out."""
    document = _known(Report, json.loads(item["report"]["S"]))
    for name in _TIMES:
        if document.get(name) is not None:
            document[name] = text_to_time(document[name])
    document["fell"] = {
        workload: {int(ready): text_to_time(at) for ready, at in times.items()}
        for workload, times in document.get("fell", {}).items()
    }
    document["killed"] = tuple(document.get("killed", ()))
    document["reasons"] = tuple(map(_data_to_reason, document.get("reasons", ())))
    return Report(**document)


def score_key(cluster: str, month: str) -> Item:
    """Return the key of a score in the table `reports`, where no interruption has it."""
    return strings(interruption=f"score@{cluster}/{month}")


def begun_score(cluster: str, month: str, version: int) -> Score:
    """Return a score to which nothing was added yet."""
    begins = datetime.fromisoformat(f"{month}-01T00:00:00Z")
    return Score(cluster=cluster, month=month, at=begins, version=version)


def score_to_item(score: Score) -> Item:
    """Return a score as an item of the table `reports`, without its version."""
    document = {
        "judged": score.judged.total_seconds(),
        "left_out": score.left_out,
        "workloads": {
            name: [
                *(getattr(each, part).total_seconds() for part in _PARTS),
                time_to_text(each.until),
                each.falling,
                each.short,
            ]
            for name, each in score.workloads.items()
        },
    }
    # It has no time `noticed`: the index of reports leaves it out.
    return {
        **score_key(score.cluster, score.month),
        **strings(
            of=score.cluster,
            month=score.month,
            at=time_to_text(score.at),
            score=json.dumps(document, separators=(",", ":")),
        ),
        TTL: expiry(score.at + KEEP_SCORES),
    }


def item_to_score(item: Mapping[str, Any]) -> Score:
    """Return what `score_to_item` wrote."""
    document = json.loads(item["score"]["S"])
    return Score(
        cluster=item["of"]["S"],
        month=item["month"]["S"],
        at=text_to_time(item["at"]["S"]),
        judged=timedelta(seconds=document["judged"]),
        left_out=document["left_out"],
        workloads={
            name: WorkloadScore(
                **{part: timedelta(seconds=each[n]) for n, part in enumerate(_PARTS)},
                until=text_to_time(each[3]),
                falling=each[4],
                short=each[5],
            )
            for name, each in document["workloads"].items()
        },
        version=version_of(item),
    )


def _reason_to_data(reason: Reason) -> dict[str, Any]:
    """Return a reason without what is empty."""
    told = {name: value for name, value in asdict(reason).items() if value}
    return told | {name: time_to_text(told[name]) for name in ("first", "last") if name in told}


def _data_to_reason(told: Mapping[str, Any] | str) -> Reason:
    """Return what `_reason_to_data` wrote; earlier versions wrote words alone.

    A reason of a newer version keeps the fields that this one has; without a cause, its document stands for that.
    """
    if isinstance(told, str):
        return Reason(why=told)
    why = told.get("why") or json.dumps(told, separators=(",", ":"))
    times = {name: text_to_time(told[name]) for name in ("first", "last") if name in told}
    pods = tuple(told.get("pods", ()))
    return Reason(**{**_known(Reason, told), **times, "pods": pods, "why": why})


def samples_to_item(cluster: str, workload: Ref, samples: Samples) -> Item:
    """Return what the pods of a workload told as an item of the table `times`; to the second."""
    document: dict[str, list[Any]] = {
        kind: [
            (each.uid, int(each.at.timestamp()), each.seconds) for each in getattr(samples, kind)
        ]
        for kind in _SAMPLES
    }
    times = [at for told in document.values() for _, at, _ in told]
    if samples.count is not None:
        times.append(int(samples.count.at.timestamp()))
        document["count"] = [times[-1], samples.count.pods]
    return {
        **strings(
            cluster=cluster,
            workload=str(workload),
            samples=json.dumps(document, separators=(",", ":")),
        ),
        TTL: {"N": str(max(times) + int(TIMES_KEPT.total_seconds()))},
    }


def item_to_samples(item: Mapping[str, Any]) -> Samples:
    """Return what `samples_to_item` wrote."""
    document = json.loads(item["samples"]["S"])
    counted = document.get("count")
    return Samples(
        **{
            kind: tuple(
                Sample(uid=uid, at=datetime.fromtimestamp(at, UTC), seconds=seconds)
                for uid, at, seconds in document.get(kind, ())
            )
            for kind in _SAMPLES
        },
        count=counted and Count(at=datetime.fromtimestamp(counted[0], UTC), pods=counted[1]),
    )
