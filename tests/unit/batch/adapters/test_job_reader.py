"""What is read of the objects of gangs."""

from __future__ import annotations

from plimsoll_batch.adapters.kubernetes.job_reader import parse_failed_pod


def ended(name, code, at="2026-11-17T14:00:00Z"):
    return {"name": name, "state": {"terminated": {"exitCode": code, "finishedAt": at}}}


def a_failed_pod(*, containers, initial=(), init_containers=()):
    return parse_failed_pod(
        {
            "metadata": {
                "name": "w-0",
                "namespace": "lab",
                "uid": "w-0",
                "creationTimestamp": "2026-11-17T13:00:00Z",
            },
            "spec": {"initContainers": [*init_containers], "containers": [{"name": "main"}]},
            "status": {
                "phase": "Failed",
                "containerStatuses": [*containers],
                "initContainerStatuses": [*initial],
            },
        }
    )


def test_the_exit_code_of_a_failed_pod_is_that_of_its_container_and_not_of_a_sidecar():
    pod = a_failed_pod(
        init_containers=[{"name": "proxy", "restartPolicy": "Always"}],
        initial=[ended("proxy", 143, "2026-11-17T14:00:30Z")],
        containers=[ended("main", 3)],
    )
    assert pod.code == 3


def test_an_init_container_that_fails_gives_its_exit_code():
    pod = a_failed_pod(
        init_containers=[{"name": "fetch"}], initial=[ended("fetch", 7)], containers=[]
    )
    assert pod.code == 7
