"""`plimsoll jobs submit` of a job of several roles: the Jobs, the Service and the environment that it becomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.queue_scenes import Scene

EXAMPLE = Path(__file__).parents[4] / "examples" / "queues" / "train.yaml"
CONTAINER: dict[str, Any] = {
    "name": "main",
    "image": "x",
    "resources": {"requests": {"cpu": "1"}},
}
INDEX = {
    "valueFrom": {
        "fieldRef": {
            "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        }
    }
}


def a_role(name: str, pods: int = 1, container: dict[str, Any] | None = None, **more: Any) -> Any:
    spec = {"containers": [{**CONTAINER, **(container or {})}]}
    return {"name": name, "pods": pods, "template": {"spec": spec}, **more}


def a_file(*roles: Any, **more: Any) -> dict[str, Any]:
    return {"name": "train", "queue": "lab", "namespace": "lab", "roles": [*roles], **more}


@pytest.fixture
def scene() -> Scene:
    return Scene(nodes=6)


@pytest.fixture
def submit(scene, tmp_path):
    def submitted(document: Any, *words: str):
        file = tmp_path / "job.yaml"
        file.write_text(yaml.safe_dump(document))
        environment = MemoryEnvironment(transports={"harbor": scene.wire})
        environment.clock.time = scene.clock.time
        return run(environment, "jobs", "submit", "-f", str(file), *words)

    return submitted


@pytest.fixture
def printed(submit):
    def objects(document: Any) -> dict[str, Any]:
        result = submit(document, "--print")
        assert result.exit_code == 0, result.output
        return {
            f"{each['kind']} {each['metadata']['name']}": each
            for each in yaml.safe_load_all(result.output)
        }

    return objects


def variables(job: Any) -> dict[str, Any]:
    [container] = job["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


def test_each_role_is_a_job_and_they_wait_and_start_as_one_gang(scene, submit):
    result = submit(a_file(a_role("ps", 2), a_role("workers", 4)))
    assert result.exit_code == 0, result.output
    assert scene.suspended("train-ps")
    job = scene.job("train-workers")
    assert job["metadata"]["annotations"]["plimsoll.dev/gang-size"] == "6"
    scene.run()
    assert scene.running("train-ps", "train-workers") == 6


def test_a_headless_service_names_the_pods_and_goes_with_the_jobs(scene, submit):
    submit(a_file(a_role("ps", 2), a_role("workers", 4)))
    service = scene.play.get("/api/v1/namespaces/lab/services/train")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"]
    assert {owner["name"] for owner in service["metadata"]["ownerReferences"]} == {
        "train-ps",
        "train-workers",
    }
    for name in ("train-ps", "train-workers"):
        template = scene.job(name)["spec"]["template"]
        assert template["spec"]["subdomain"] == "train"
        assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()


def test_what_native_fields_say_is_written_there(printed):
    job = printed(
        a_file(a_role("workers", 4, retries=3, succeedsWith=2), timeLimitSeconds=600, ttlSeconds=60)
    )["Job train-workers"]["spec"]
    assert (job["completionMode"], job["completions"], job["parallelism"]) == ("Indexed", 4, 4)
    assert (job["backoffLimitPerIndex"], job["maxFailedIndexes"]) == (3, 0)
    assert job["successPolicy"] == {"rules": [{"succeededCount": 2}]}
    assert "backoffLimit" not in job
    assert (job["activeDeadlineSeconds"], job["ttlSecondsAfterFinished"]) == (600, 60)
    assert job["podFailurePolicy"]["rules"][0]["action"] == "Ignore"
    assert job["template"]["spec"]["restartPolicy"] == "Never"


def test_what_is_said_of_the_gang_is_written_on_each_job(printed):
    said = {"priority": 3, "topology": "required=rack", "startSeconds": 60}
    made = printed(a_file(a_role("a"), a_role("b"), onInterruption="suspend", **said))
    for name in ("Job train-a", "Job train-b"):
        notes = made[name]["metadata"]["annotations"]
        assert json.loads(notes.pop("plimsoll.dev/lifecycle"))["policies"] == [
            {"event": "RoleFailed", "action": "TerminateJob"}
        ]
        assert notes == {
            "plimsoll.dev/priority": "3",
            "plimsoll.dev/topology": "required=rack",
            "plimsoll.dev/start-seconds": "60",
            "plimsoll.dev/on-interruption": "suspend",
            "plimsoll.dev/gang-size": "2",
        }


def test_pytorch_reads_its_master_its_size_and_its_rank(printed):
    job = a_file(a_role("workers", 4), a_role("data"), framework={"pytorch": {"role": "workers"}})
    made = printed(job)
    env = variables(made["Job train-workers"])
    assert env["MASTER_ADDR"] == env["PET_MASTER_ADDR"] == "train-workers-0.train"
    assert env["MASTER_PORT"] == env["PET_MASTER_PORT"] == "29500"
    assert env["WORLD_SIZE"] == env["PET_NNODES"] == "4"
    assert env["RANK"] == env["PET_NODE_RANK"] == INDEX["valueFrom"]
    assert variables(made["Job train-data"]) == {}


def test_tensorflow_reads_the_cluster_and_its_own_task(printed):
    job = a_file(
        a_role("ps"), a_role("worker", 2), a_role("evaluator"), framework={"tensorflow": {}}
    )
    made = printed(job)
    env = variables(made["Job train-worker"])
    text = env["TF_CONFIG"].replace("$(JOB_COMPLETION_INDEX)", "1")
    assert json.loads(text) == {
        "cluster": {
            "ps": ["train-ps-0.train:2222"],
            "worker": ["train-worker-0.train:2222", "train-worker-1.train:2222"],
        },
        "task": {"type": "worker", "index": 1},
    }
    assert list(env) == ["JOB_COMPLETION_INDEX", "TF_CONFIG"]  # it is expanded from those before
    assert '"type": "evaluator"' in variables(made["Job train-evaluator"])["TF_CONFIG"]


@pytest.mark.parametrize(
    ("implementation", "lines", "variable"),
    [
        ("openmpi", "train-workers-0.train slots=8\n", "OMPI_MCA_orte_default_hostfile"),
        ("mpich", "train-workers-0.train:8\n", "HYDRA_HOST_FILE"),
        ("intel", "train-workers-0.train:8\n", "I_MPI_HYDRA_HOST_FILE"),
    ],
)
def test_an_mpi_launcher_finds_the_hosts_of_its_workers(printed, implementation, lines, variable):
    mpi = {"slots": 8, "implementation": implementation}
    made = printed(a_file(a_role("launcher"), a_role("workers", 2), framework={"mpi": mpi}))
    hosts = made["ConfigMap train-hosts"]["data"]["hostfile"]
    assert hosts == lines + lines.replace("workers-0", "workers-1")
    launcher = made["Job train-launcher"]
    assert variables(launcher)[variable] == "/etc/mpi/hostfile"
    spec = launcher["spec"]["template"]["spec"]
    assert spec["volumes"][0]["configMap"] == {"name": "train-hosts"}
    assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/etc/mpi"
    assert "volumes" not in made["Job train-workers"]["spec"]["template"]["spec"]


def test_a_variable_that_the_owner_sets_is_kept(printed):
    own = {"env": [{"name": "MASTER_PORT", "value": "1234"}]}
    job = a_file(a_role("workers", 2, own), framework={"pytorch": {"role": "workers"}})
    assert variables(printed(job)["Job train-workers"])["MASTER_PORT"] == "1234"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"roles": []}, "roles: must have at least 1 entries, not 0"),
        ({"roles": [a_role("a"), a_role("a")]}, "two roles are named a"),
        ({"roles": [a_role("a", 0)]}, "roles.0.pods"),
        ({"roles": [a_role("a", tasks=3)]}, "roles.0.tasks"),
        ({"roles": [a_role("a" * 60)]}, "longer than 63 characters"),
        ({"roles": [a_role("a", 2, succeedsWith=3)]}, "succeedsWith is more than its pods"),
        ({"roles": [{"name": "a", "template": {"spec": {}}}]}, "must be a list of containers"),
        (
            {"roles": [{"name": "a", "template": {"spec": {"containers": [{}], "hostname": "x"}}}]},
            "leave out hostname",
        ),
        (
            {
                "roles": [
                    {
                        "name": "a",
                        "template": {"spec": {"containers": [{}], "restartPolicy": "OnFailure"}},
                    }
                ]
            },
            "must be Never",
        ),
        ({"framework": {"pytorch": {"role": "b"}}}, "there is no role b"),
        ({"framework": {"mpi": {}}}, "there is no role launcher"),
        ({"framework": {"tensorflow": {}}}, "no role is named chief or worker"),
        ({"framework": {"mpi": {}, "tensorflow": {}}}, "more than one framework"),
        ({"roles": [a_role("a", after={"b": "Ready"})]}, "waits for role b, which is not there"),
        (
            {
                "roles": [a_role("a", retries=1)],
                "policies": [{"event": "PodFailed", "action": "RestartJob"}],
            },
            "leave out one of them",
        ),
        ({"policies": [{"event": "RoleFailed", "action": "AbortJob"}]}, "cannot be started again"),
        ({"queue": None}, "names no queue"),
        ({"name": "Train"}, "name: "),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_file_that_is_wrong_is_refused_by_place(scene, submit, change, words):
    result = submit(a_file(a_role("a")) | change)
    assert result.exit_code == 2
    assert words in result.output
    assert not list(scene.play.cluster.store.all("jobs"))


def test_a_cluster_configuration_too_long_for_a_variable_is_refused(submit):
    result = submit(a_file(a_role("worker", 9000), framework={"tensorflow": {}}))
    assert result.exit_code == 2
    assert "TF_CONFIG would have more than" in result.output


def test_where_the_service_is_refused_no_job_is_left(scene, submit):
    taken = {"kind": "Service", "metadata": {"name": "train", "namespace": "lab"}, "spec": {}}
    scene.play.apply(taken)
    assert submit(a_file(a_role("a"))).exit_code == 2
    scene.clock.sleep(1)
    assert not list(scene.play.cluster.store.all("jobs"))


def test_the_example_is_right_and_its_queue_may_be_another(submit):
    result = submit(yaml.safe_load(EXAMPLE.read_text()), "--queue", "lab", "-n", "lab", "--print")
    assert result.exit_code == 0, result.output
    jobs = [each for each in yaml.safe_load_all(result.output) if each["kind"] == "Job"]
    assert [job["metadata"]["labels"]["plimsoll.dev/queue"] for job in jobs] == ["lab", "lab"]
