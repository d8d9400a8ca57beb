"""`plimsoll install-policy`: an admission policy that keeps on-demand floors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import click
import yaml

from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.errors import BadInput, Conflict, NotFound, Refused
from plimsoll.domain.kubernetes import FLOORS, INJECT_FLOORS, KUBE_SYSTEM, NAMESPACE, Ref
from plimsoll.domain.placement import INJECTION_CANARIES, injection_key, with_new_canary
from plimsoll.services.injection import Proof, Proven, prove
from plimsoll.services.ports import Clock, ClusterApi
from plimsoll_cli.kubeconfig_options import kubeconfig_options
from plimsoll_cli.options import environment_of
from plimsoll_cli.terminal import say

GROUP: Final = "admissionregistration.k8s.io"
PATIENCE_SECONDS: Final = 30.0
"""How long the API server may take to compile a policy; usually one or two seconds."""
PAUSE_SECONDS: Final = 0.5
_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "MutatingAdmissionPolicy": (GROUP, "mutatingadmissionpolicies"),
    "MutatingAdmissionPolicyBinding": (GROUP, "mutatingadmissionpolicybindings"),
    "ConfigMap": ("", "configmaps"),
}
EXAMPLES: Final = """\b
Examples:
  plimsoll install-policy --context harbor --dry-run
  plimsoll install-policy --context harbor --namespace shop --namespace billing
  plimsoll install-policy --context harbor --remove

\b
Exit status:
  0  the command succeeded
  1  a canary failed, and the command removed the binding
  2  an argument is wrong, or the cluster cannot be reached or has no such policies
"""


@click.command(epilog=EXAMPLES)
@kubeconfig_options
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Constrain the pods of this namespace. Repeat it for several namespaces.",
)
@click.option("--dry-run", is_flag=True, help="Print the changes, and write nothing.")
@click.option(
    "--remove", is_flag=True, help="Remove the policy, its bindings, ConfigMaps and labels."
)
@click.pass_context
def install_policy(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    context: str | None,
    kubeconfig: Path | None,
    namespaces: tuple[str, ...],
    dry_run: bool,
    remove: bool,
) -> None:
    """Install an admission policy that keeps on-demand floors, without changes to your manifests.

    Once placement has labelled the nodes, the policy gives new pods of your namespaces the constraint that
    `plimsoll plan snippet` prints. The command tests the policy with canary pods in dry runs, and removes the
    binding if the API server refuses one.

    You need Kubernetes 1.36 and the rights of an administrator. Placement needs the rights of: plimsoll
    clusters add NAME --context CONTEXT --overlay injection
    """
    if remove and namespaces:
        raise click.UsageError(
            "--remove removes the policy from all namespaces: give no --namespace"
        )
    if KUBE_SYSTEM in namespaces:
        raise click.UsageError(f"--namespace {KUBE_SYSTEM}: the policy constrains no pod there")
    environment = environment_of(ctx)
    _, api = environment.by_kubeconfig(kubeconfig, context)
    installer = _Installer(api.requests, dry_run=dry_run)
    if remove:
        for said in installer.remove():
            say(said)
        return
    installer.check(namespaces)
    for said in installer.install():
        say(said)
    if not dry_run:
        found = _proven(environment.clock, api, installer, INJECTION_CANARIES)
        if found.proof is Proof.IN_FORCE:  # does the API server see it when they change?
            found = _proven(environment.clock, api, installer, with_new_canary(INJECTION_CANARIES))
        if found.proof is not Proof.IN_FORCE:
            installer.unbind()
            say(f"a canary failed, so the binding is removed: {found.why}", err=True)
            ctx.exit(1)
        say(f"tested: {found.why}")
    for namespace in namespaces:
        say(installer.opt_in(namespace))


def _proven(
    clock: Clock, api: ClusterApi, installer: _Installer, canaries: Mapping[Ref, str]
) -> Proven:
    """Tell the policy of the canaries, and try them until they get what it is told."""
    installer.tell(NAMESPACE, {injection_key(ref): entry for ref, entry in canaries.items()})
    until = clock.now() + timedelta(seconds=PATIENCE_SECONDS)
    late = {Proof.ABSENT, Proof.STALE}
    while (found := prove(api, api.injected_floors())).proof in late and clock.now() < until:
        clock.sleep(PAUSE_SECONDS)
    return found


class _Installer:
    """Writes with the rights of the user; each step returns a line about its change."""

    def __init__(self, requests: Requests, *, dry_run: bool) -> None:
        self._requests = requests
        self._dry_run = dry_run

    def check(self, namespaces: tuple[str, ...]) -> None:
        """Check the cluster before anything is written.

        Raises:
            Refused: the API server has no such policies.
            BadInput: there is no such namespace, or none for Plimsoll.
        """
        group, plural = _KINDS["MutatingAdmissionPolicy"]
        try:
            self._requests.list(Call(verb="list", group=group, resource=plural))
        except NotFound as error:
            raise Refused(
                f"cluster {self._requests.cluster} has no MutatingAdmissionPolicy in "
                f"{GROUP}/v1, which needs Kubernetes 1.36: commit the lines of `plimsoll plan snippet` "
                "instead"
            ) from error
        there = {n["metadata"]["name"] for n in self._requests.list(_call("list", "namespaces"))}
        for namespace in (NAMESPACE, *namespaces):
            if namespace not in there:
                added = "plimsoll clusters add NAME --context CONTEXT"
                cure = added if namespace == NAMESPACE else "create it"
                raise BadInput(f"there is no namespace {namespace}: {cure} first")

    def install(self) -> Iterator[str]:
        """Write policy and bindings, and let them concern the canaries."""
        yield self.opt_in(NAMESPACE)
        for manifest in manifests():
            yield self._write(manifest)

    def opt_in(self, namespace: str) -> str:
        """Let the policy constrain the new pods of a namespace."""
        said = self.tell(namespace, {})
        self._label(namespace, "true")
        return f"{said}; label {INJECT_FLOORS}=true on Namespace {namespace}"

    def tell(self, namespace: str, entries: Mapping[str, str]) -> str:
        """Change what the policy is told of a namespace."""
        metadata = {"name": FLOORS, "namespace": namespace}
        return self._write(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": entries}
        )

    def unbind(self) -> None:
        """Take the policy out of force."""
        self._delete("MutatingAdmissionPolicyBinding", FLOORS)

    def remove(self) -> Iterator[str]:
        """Remove everything, the bindings first."""
        for manifest in reversed([*manifests()]):
            yield self._delete(manifest["kind"], manifest["metadata"]["name"])
        floors = self._requests.list(_call("list", "configmaps"), fields=f"metadata.name={FLOORS}")
        for found in floors:
            yield self._delete("ConfigMap", FLOORS, found["metadata"]["namespace"])
        for found in self._requests.list(_call("list", "namespaces")):
            if INJECT_FLOORS in (found["metadata"].get("labels") or {}):
                self._label(found["metadata"]["name"], None)
                yield self._said(
                    f"remove label {INJECT_FLOORS} of Namespace {found['metadata']['name']}"
                )

    def _label(self, namespace: str, value: str | None) -> None:
        body = {"metadata": {"labels": {INJECT_FLOORS: value}}}
        self._send(_call("patch", "namespaces"), name=namespace, body=body)

    def _write(self, manifest: Mapping[str, Any]) -> str:
        """Create an object, or change the one that is there."""
        metadata = manifest["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace")
        group, plural = _KINDS[manifest["kind"]]
        try:
            # Create first, then patch on Conflict: a GET before the write could be out of date.
            self._send(_call("create", plural, group), namespace=namespace, body=manifest)
        except Conflict:
            self._send(_call("patch", plural, group), namespace=namespace, name=name, body=manifest)
        return self._said(f"write {manifest['kind']} {namespace + '/' if namespace else ''}{name}")

    def _delete(self, kind: str, name: str, namespace: str | None = None) -> str:
        group, plural = _KINDS[kind]
        about = f"{kind} {namespace + '/' if namespace else ''}{name}"
        try:
            self._send(_call("delete", plural, group), namespace=namespace, name=name)
        except NotFound:
            return f"there is no {about}"
        return self._said(f"delete {about}")

    def _send(self, call: Call, **request: Any) -> None:
        if not self._dry_run:
            self._requests.send(call, **request)

    def _said(self, what: str) -> str:
        return f"would {what}" if self._dry_run else what


def _call(verb: str, plural: str, group: str = "") -> Call:
    return Call(verb=verb, group=group, resource=plural)


def manifests() -> Iterator[dict[str, Any]]:
    """Yield the policy and its bindings."""
    text = files("plimsoll_cli").joinpath("manifests/injection.yaml").read_text(encoding="utf-8")
    yield from yaml.safe_load_all(text)
