"""Reads the configuration of the batch queues of a drill's cluster, as the ConfigMap that holds it."""

from __future__ import annotations

import json
from pathlib import Path

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll_batch.domain.names import CONFIGURATION, CONFIGURATION_KEY
from plimsoll_simulation.scenario.manifests import Manifest
from plimsoll_simulation.scenario.problems import Place, Problems
from plimsoll_simulation.scenario.yamlfiles import read_documents


def read_queues(file: Path | None, problems: Problems, named_at: Place) -> tuple[Manifest, ...]:
    """Return the ConfigMap of a file of queues; what is wrong goes to `problems`.

    Args:
        file: None where a cluster has no queues.
        problems: where to note what is wrong.
        named_at: the place that names the file.
    """
    if file is None:
        return ()
    from plimsoll_batch.adapters.queues_file import configuration_of  # noqa: PLC0415 - for the few scenarios with queues

    documents = read_documents(file, problems, named_at=named_at)
    if len(documents) != 1:
        if documents:
            problems.add(
                documents[1].place(),
                found="a second document",
                allowed="one configuration of queues",
                cure="Move it into the first",
            )
        return ()
    [document] = documents
    try:
        configuration_of(document.value)
    except BadInput as error:
        for line in str(error).splitlines():
            problems.add(
                document.place(),
                found=line,
                allowed="a configuration of queues",
                cure="Mend it; `plimsoll queues check` tries it alone",
            )
        return ()
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIGURATION, "namespace": NAMESPACE},
        "data": {CONFIGURATION_KEY: json.dumps(document.value)},
    }
    return (
        Manifest(
            kind="ConfigMap",
            namespace=NAMESPACE,
            name=CONFIGURATION,
            body=body,
            document=document,
        ),
    )
