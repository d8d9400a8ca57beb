"""What the launchers of TensorFlow, PyTorch and MPI read of their job: names of hosts, sizes and ranks.

Hosts are named by the Job controller and the headless Service of the job, so all of it is known before
any pod is. The index of a pod comes from the annotation that the Job controller writes on it.

Sources: https://pytorch.org/docs/stable/elastic/run.html, https://www.tensorflow.org/guide/distributed_training,
https://docs.open-mpi.org/en/main/launching-apps/index.html,
https://kubernetes.io/docs/tasks/job/job-with-pod-to-pod-communication/
"""

from __future__ import annotations

import json
from typing import Any, Final

from plimsoll.domain.errors import BadInput
from plimsoll_cli.batch.submission.job_file import JobFile, Mpi, PyTorch, RoleEntry, TensorFlow

type Json = dict[str, Any]

INDEX: Final = "JOB_COMPLETION_INDEX"
HOSTS: Final = "/etc/mpi"
LONGEST: Final = 100 * 1024
"""Characters of one variable: Linux starts nothing with more than 128 KiB in one."""
_FROM_INDEX: Final = {
    "fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}
}
_TYPES: Final = ("chief", "worker", "ps")
"""Roles of a TensorFlow cluster; an evaluator is told of it and is no part of it."""
_HOST_FILE: Final = {
    "openmpi": ("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"),
    "mpich": ("HYDRA_HOST_FILE",),
    "intel": ("I_MPI_HYDRA_HOST_FILE",),
}


def environment(job: JobFile, role: RoleEntry) -> list[Json]:
    """Return the variables that a role's containers are given."""
    named = job.framework
    if named.pytorch is not None and role.name == named.pytorch.role:
        return _pytorch(job, role, named.pytorch)
    if named.tensorflow is not None and role.name in {*_TYPES, "evaluator"}:
        return _tensorflow(job, role, named.tensorflow)
    if named.mpi is not None and role.name == named.mpi.launcher:
        file = f"{HOSTS}/hostfile"
        more = [_set(name, file) for name in _HOST_FILE[named.mpi.implementation]]
        if named.mpi.implementation == "openmpi":  # hosts are not known by their first label alone
            more.append(_set("OMPI_MCA_orte_keep_fqdn_hostnames", "true"))
        return more
    return []


def host_file(job: JobFile, mpi: Mpi) -> str:
    """Return the hosts of the workers, and how many processes each takes."""
    role = job.role(mpi.workers)
    form = "{} slots={}\n" if mpi.implementation == "openmpi" else "{}:{}\n"
    return "".join(form.format(host(job, role, i), mpi.slots) for i in range(role.pods))


def host(job: JobFile, role: RoleEntry, index: int) -> str:
    """Return the name by which the pods of the same namespace find a pod."""
    return f"{job.name}-{role.name}-{index}.{job.name}"


def _pytorch(job: JobFile, role: RoleEntry, entry: PyTorch) -> list[Json]:
    """Return what `env://` reads, and the same for torchrun."""
    said = {
        "MASTER_ADDR": host(job, role, 0),
        "MASTER_PORT": str(entry.port),
        "WORLD_SIZE": str(role.pods),
        "PET_MASTER_ADDR": host(job, role, 0),
        "PET_MASTER_PORT": str(entry.port),
        "PET_NNODES": str(role.pods),
    }
    ranks = [{"name": name, "valueFrom": _FROM_INDEX} for name in ("RANK", "PET_NODE_RANK")]
    return [*(_set(name, value) for name, value in said.items()), *ranks]


def _tensorflow(job: JobFile, role: RoleEntry, entry: TensorFlow) -> list[Json]:
    there = {each.name: each for each in job.roles if each.name in _TYPES}
    cluster = {
        name: [f"{host(job, each, index)}:{entry.port}" for index in range(each.pods)]
        for name, each in there.items()
    }
    text = json.dumps({"cluster": cluster, "task": {"type": role.name, "index": "INDEX"}})
    if len(text) > LONGEST:
        raise BadInput(f"TF_CONFIG would have more than {LONGEST} characters: use fewer pods")
    return [
        {"name": INDEX, "valueFrom": _FROM_INDEX},
        _set("TF_CONFIG", text.replace('"INDEX"', f"$({INDEX})")),
    ]


def _set(name: str, value: str) -> Json:
    return {"name": name, "value": value}
