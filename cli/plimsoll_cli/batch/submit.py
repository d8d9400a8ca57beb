"""`plimsoll jobs submit`: create Jobs, a job of several roles, or a JobSet in a queue.

The Jobs are created suspended. The planner alone decides whether and where they run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import yaml

from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.errors import BadInput, PlimsollError
from plimsoll_batch.adapters.documents import validated
from plimsoll_batch.domain import names
from plimsoll_batch.domain.jobs import MOST_ROLES
from plimsoll_cli.batch.gangs import delete
from plimsoll_cli.batch.submission import jobset
from plimsoll_cli.batch.submission.job_file import JobFile
from plimsoll_cli.batch.submission.manifests import Manifests, manifests
from plimsoll_cli.batch.submission.preview import refuse_hopeless, refuse_misspelt
from plimsoll_cli.batch.yaml_documents import read_documents
from plimsoll_cli.kubeconfig_options import kubeconfig_options
from plimsoll_cli.options import environment_of
from plimsoll_cli.terminal import say

_CREATE: Final = Call(verb="create", group="batch", resource="jobs")
_CREATE_OTHERS: Final = {
    "Service": Call(verb="create", resource="services"),
    "ConfigMap": Call(verb="create", resource="configmaps"),
}
EXAMPLES: Final = """\b
Examples:
  plimsoll jobs submit -f examples/queues/train.yaml --queue research
  plimsoll jobs submit -f jobs.yaml --queue research --gang train
  plimsoll jobs submit -f examples/queues/train.yaml --queue research --print

\b
Exit status:
  0  all Jobs were created, and wait in the queue
  2  the file is invalid, a right is missing, or the cluster cannot be reached; no Job is left
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "-f",
    "--file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read a job of several roles, a JobSet, or manifests of Jobs, in YAML.",
)
@click.option("--queue", metavar="NAME", help="Use this queue. [default: the queue in the file]")
@click.option(
    "--gang", metavar="NAME", help="Start all Jobs of the file together, as a gang of this name."
)
@click.option(
    "--priority",
    metavar="NUMBER|NAME",
    help="Set the priority, or a name that the queues give one; the highest comes first.",
)
@click.option(
    "--namespace",
    "-n",
    default="default",
    show_default=True,
    metavar="NAME",
    help="Use this namespace for objects without one.",
)
@click.option("--print", "printed", is_flag=True, help="Print the manifests, and create nothing.")
@kubeconfig_options
@click.pass_context
def submit(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    file: Path,
    queue: str | None,
    gang: str | None,
    priority: str | None,
    namespace: str,
    printed: bool,
    context: str | None,
    kubeconfig: Path | None,
) -> None:
    """Create the Jobs of a file, suspended and labelled for a queue.

    A job of several roles becomes a gang, with a Job for each role and a headless Service for host names.
    With --gang, the Jobs of a file become the roles of one gang. Jobs that would wait for ever are refused, as in
    a queue that does not exist or can never have so much. If the cluster refuses an object, the
    command deletes the objects that it created before.
    """
    documents = read_documents(file)
    if (job := _job_in(file, documents)) is not None:
        made = manifests(job)
        queue, gang = queue or job.queue, gang or job.name
        priority = priority or (None if job.priority is None else str(job.priority))
        namespace = job.namespace or namespace
    else:
        made = Manifests(jobs=_jobs_in(file, documents), others=[])
    size = sum(_parallelism(job) for job in made.jobs)
    for each in made.jobs:
        _mark(each, queue, gang, priority, size)
    for each in (*made.jobs, *made.others):
        each["metadata"].setdefault("namespace", namespace)
    refuse_misspelt(made.jobs)
    if printed:
        say(yaml.safe_dump_all([*made.others, *made.jobs], sort_keys=False), nl=False)
        return
    environment = environment_of(ctx)
    _, api = environment.by_kubeconfig(kubeconfig, context)
    refuse_hopeless(api.requests, made.jobs, environment.clock)
    for meta in _create(api.requests, made):
        say(f"Job {meta['namespace']}/{meta['name']} waits in queue {meta['labels'][names.QUEUE]}")


def _create(requests: Requests, made: Manifests) -> Sequence[Mapping[str, Any]]:
    """Create Jobs, and then what they own, and return the metadata of the Jobs; where one is refused, none is left."""
    owners: list[dict[str, Any]] = []
    created: list[Mapping[str, Any]] = []
    try:
        for job in made.jobs:
            named = {"namespace": job["metadata"]["namespace"], "name": _name(job)}
            meta = requests.send(_CREATE, **named, body=job)["metadata"]
            created.append(meta)
            kind = {"apiVersion": job["apiVersion"], "kind": job["kind"]}
            owners.append({**kind, "name": meta["name"], "uid": meta["uid"]})
        for other in made.others:
            meta = other["metadata"]
            requests.send(
                _CREATE_OTHERS[other["kind"]],
                namespace=meta["namespace"],
                name=meta["name"],
                body={**other, "metadata": {**meta, "ownerReferences": owners}},
            )
    except PlimsollError:
        for meta in created:
            delete(requests, meta["namespace"], meta["name"], uid=meta["uid"])
        raise
    return created


def _job_in(file: Path, documents: Sequence[Any]) -> JobFile | None:
    """Return the job of several roles that a file holds; None where it holds manifests of Jobs."""
    document = documents[0] if len(documents) == 1 else None
    if not isinstance(document, dict):
        return None
    try:
        if document.get("kind") == jobset.KIND:
            return validated(JobFile, jobset.job_of(document))
        return validated(JobFile, document) if "roles" in document else None
    except BadInput as error:
        raise BadInput(f"{file}:\n{error}") from error


def _jobs_in(file: Path, found: Sequence[Any]) -> list[dict[str, Any]]:
    for number, each in enumerate(found):
        if not _name(each) or each.get("kind") != "Job" or each.get("apiVersion") != "batch/v1":
            raise BadInput(
                f"{file}: document {number}: must be a Job of batch/v1 with a name or generateName"
            )
    if not 0 < len(found) <= MOST_ROLES:
        raise BadInput(f"{file}: must hold 1 to {MOST_ROLES} Jobs, not {len(found)}")
    return [*found]


def _name(job: Any) -> str:
    """Return the name of a Job, or what the API server begins its name with; empty: it is no object with either."""
    meta = job.get("metadata") if isinstance(job, dict) else None
    return str(meta.get("name") or meta.get("generateName") or "") if isinstance(meta, dict) else ""


def _parallelism(job: Mapping[str, Any]) -> int:
    said = (job.get("spec") or {}).get("parallelism", 1)
    if not isinstance(said, int) or said < 0:
        raise BadInput(f"Job {_name(job)}: spec.parallelism: must be a whole number")
    return said


def _mark(
    job: dict[str, Any], queue: str | None, gang: str | None, priority: str | None, size: int
) -> None:
    meta = job["metadata"]
    labels = meta["labels"] = dict(meta.get("labels") or {})
    notes = meta["annotations"] = dict(meta.get("annotations") or {})
    if queue is not None:
        labels[names.QUEUE] = queue
    if names.QUEUE not in labels:
        raise BadInput(f"Job {_name(job)} names no queue: give --queue")
    if gang is not None:
        labels[names.GANG] = gang
        least, sign, _ = str(notes.get(names.GANG_SIZE, "")).rpartition(":")
        notes[names.GANG_SIZE] = f"{least}{sign}{size}"
    if priority is not None:
        notes[names.PRIORITY] = priority
    job["spec"] = {**(job.get("spec") or {}), "suspend": True}
