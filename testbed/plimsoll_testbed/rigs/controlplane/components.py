"""The command lines of a control plane's programs, each flag with its reason.

What is not set has the default that a cluster of that version has: --node-monitor-grace-period,
eviction and collection times, ValidatingAdmissionPolicy, API priority and fairness. The exception is
`TURNED_ON`: what a cluster's owner may turn on, and Plimsoll then reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from plimsoll_testbed.rigs.supervised import free_port

IN_FLIGHT: Final = 1200
MUTATING_IN_FLIGHT: Final = 600
"""Three times the defaults: EKS scales these with the control plane, and two cores saturate first."""
LEASE_SECONDS: Final = 40
"""As kubelets' nodeLeaseDurationSeconds; renewed at a quarter of it."""
_NOT_CONTROLLED: Final = (
    "node-ipam-controller",  # no pod network
    "certificatesigningrequest-signing-controller",  # nobody joins by certificate
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-token-controller",
)
_LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Features that a minor of Kubernetes has, and leaves off."""

    gates: Sequence[str] = ()
    apis: Sequence[str] = ()
    """Groups and versions that the API server then serves."""

    @property
    def of_every_program(self) -> Sequence[str]:
        """The flags of kube-apiserver, kube-controller-manager and kube-scheduler alike."""
        return [f"--feature-gates={name}=true" for name in self.gates]

    @property
    def of_api_server(self) -> Sequence[str]:
        """The flags of kube-apiserver."""
        return [*self.of_every_program, *(f"--runtime-config={name}=true" for name in self.apis)]


TURNED_ON: Final = {
    "1.37": Features(
        gates=("GenericWorkload", "EvictionRequestAPI"),
        apis=("scheduling.k8s.io/v1beta1", "lifecycle.k8s.io/v1alpha1"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where one control plane listens, all on loopback. Its other programs listen nowhere."""

    etcd: int
    peer: int
    api: int

    @classmethod
    def free(cls) -> Ports:
        """Return ports that are free now."""
        return cls(etcd=free_port(), peer=free_port(), api=free_port())


def etcd(folder: Path, ports: Ports) -> list[str]:
    """Return etcd's flags."""
    client, peer = f"http://{_LOOPBACK}:{ports.etcd}", f"http://{_LOOPBACK}:{ports.peer}"
    return [
        f"--data-dir={folder / 'etcd'}",
        "--name=default",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # nothing here outlives the process
        "--log-level=warn",
    ]


def api_server(folder: Path, ports: Ports, features: Features) -> list[str]:
    """Return kube-apiserver's flags."""
    return [
        f"--etcd-servers=http://{_LOOPBACK}:{ports.etcd}",
        f"--bind-address={_LOOPBACK}",
        f"--secure-port={ports.api}",
        f"--cert-dir={folder / 'certificates'}",  # made at the first start, kept for the next
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'service-accounts.pem'}",
        f"--service-account-signing-key-file={folder / 'service-accounts.pem'}",
        "--service-cluster-ip-range=10.96.0.0/16",
        # Pods come without a token's volume, and need not wait for their namespace's account.
        "--disable-admission-plugins=ServiceAccount",
        f"--max-requests-inflight={IN_FLIGHT}",
        f"--max-mutating-requests-inflight={MUTATING_IN_FLIGHT}",
        "--profiling=false",
        *features.of_api_server,
    ]


def controller_manager(kubeconfig: Path, features: Features) -> list[str]:
    """Return kube-controller-manager's flags; by default it would send 20 requests a second, and set-up take minutes."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(['*', *(f'-{name}' for name in _NOT_CONTROLLED)])}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--profiling=false",
        *features.of_every_program,
    ]


def scheduler(kubeconfig: Path, features: Features) -> list[str]:
    """Return kube-scheduler's flags; by default it would send 50 requests a second."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--profiling=false",
        *features.of_every_program,
    ]


def kwok(kubeconfig: Path) -> list[str]:
    """Return kwok's flags; it plays nodes only, because no stage is for pods."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--config={Path(__file__).with_name('stages.yaml')}",
        "--manage-all-nodes=true",
        f"--node-lease-duration-seconds={LEASE_SECONDS}",
        "--node-port=0",
        "--server-address=",
    ]
