"""Reads a scenario file. Nothing is started here, and manifests are only named: `drill.py` reads them."""

from __future__ import annotations

from pathlib import Path

from plimsoll_simulation.scenario.problems import BadScenario, Problems
from plimsoll_simulation.scenario.scenario import DrillFile, Scenario
from plimsoll_simulation.scenario.timeline import ApplyEntry, Entry, ScaleEntry
from plimsoll_simulation.scenario.validation import validate
from plimsoll_simulation.scenario.yamlfiles import Document, read_documents


def read_scenario(path: Path) -> Scenario:
    """Return the scenario of a file.

    Raises:
        BadScenario: with everything that is wrong, each with its line, field and cure.
    """
    problems = Problems()
    documents = read_documents(path, problems)
    if len(documents) > 1:
        problems.add(
            documents[1].place(),
            found=f"{len(documents)} documents",
            allowed="one drill in a file",
            cure="Move each drill into a file of its own, and manifests into files named by `manifests`",
        )
    problems.check()
    file = validate(DrillFile, documents[0], problems, folder=path.parent)
    if file is None:
        raise BadScenario(problems)
    return _scenario(file, path, documents[0])


def _scenario(file: DrillFile, path: Path, document: Document) -> Scenario:
    spec = file.spec
    clusters = tuple(
        cluster.model_copy(update={"place": document.place("spec", "clusters", i)})
        for i, cluster in enumerate(spec.clusters)
    )
    entries = (
        _entry(entry, clusters[0].name).model_copy(
            update={"place": document.place("spec", "timeline", i)}
        )
        for i, entry in enumerate(spec.timeline)
    )
    return Scenario(
        **dict(spec)
        | {"clusters": clusters, "timeline": tuple(sorted(entries, key=lambda entry: entry.at))},
        name=file.metadata.name,
        description=file.metadata.description,
        file=path,
        document=document,
    )


def _entry(entry: Entry, only_cluster: str) -> Entry:
    """Name the cluster where the file may leave it out."""
    match entry:
        case ScaleEntry() if not entry.scale.cluster:
            scale = entry.scale.model_copy(update={"cluster": only_cluster})
            return entry.model_copy(update={"scale": scale})
        case ApplyEntry() if not entry.cluster:
            return entry.model_copy(update={"cluster": only_cluster})
        case _:
            return entry
