"""What adding and removing a cluster by its kubeconfig share: who it is, what is there, and the steps as people see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.domain.errors import BadInput
from plimsoll.domain.registry import Cluster
from plimsoll_cli.environment import Administered, Deployed
from plimsoll_cli.setup.executor import SetupExecutor
from plimsoll_cli.setup.identity import is_same_cluster
from plimsoll_cli.setup.manifests import Manifest, objects_of
from plimsoll_cli.setup.steps import Place, Seen, Step
from plimsoll_cli.terminal import ask, say

OTHER_ACCOUNT: Final = "--context is for clusters in the account of the stack: for another account see docs/operate/accounts.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSetup:
    """A cluster that the rights of a person reach, and the stack that looks after it, or shall."""

    deployed: Deployed
    administered: Administered
    cluster: Cluster

    def title(self) -> str:
        """Return a line that says which cluster it is."""
        return (
            f"{self.cluster.name}: account {self.deployed.stack.account}, region {self.cluster.region}, "
            f"context {self.administered.context} ({self.administered.server})"
        )

    def check_identity(self) -> None:
        """Refuse a context and an EKS cluster that do not belong together.

        Raises:
            BadInput: they do not, or EKS does not know the cluster, or it has no access entries.
        """
        name, place = (
            self.cluster.name,
            f"account {self.deployed.stack.account}, {self.cluster.region}",
        )
        found = self.deployed.access.find(self.cluster)
        if found is None:
            raise BadInput(
                f"there is no EKS cluster {name} in {place}: check the name, AWS_PROFILE and AWS_DEFAULT_REGION; "
                "another kind of cluster needs --endpoint and --secret"
            )
        server = self.administered.server
        if not is_same_cluster(server, self.administered.ca, found.url, found.ca):
            raise BadInput(
                f"the context {self.administered.context} leads to {server}, and the EKS cluster {name} of {place} "
                f"is at {found.url}: choose a context and an account that belong together"
            )
        if not found.entries:
            raise BadInput(
                f"EKS cluster {name} has no access entries. This gives it some, and cannot be taken back: "
                f"aws eks update-cluster-config --name {name} --access-config authenticationMode=API_AND_CONFIG_MAP"
            )

    def place(self) -> Place:
        """Return how commands name the cluster."""
        return Place(
            cluster=self.cluster,
            stack=self.deployed.stack,
            context=self.administered.context,
            kubeconfig=self.administered.kubeconfig,
        )

    def seen(
        self,
        overlays: Sequence[str | None],
        there: Callable[[Manifest], bool],
        *,
        grown: Sequence[str] | None,
        eks: bool,
    ) -> Seen:
        """Read what a plan is made from.

        Args:
            overlays: whose manifests are asked about; None: those of every cluster.
            there: says of an object whether it is there.
            grown: the names of the node groups whose tag shall change; None: those that adding the cluster tagged.
            eks: whether EKS knows the cluster.

        Raises:
            BadInput: there is no node group of that name.
        """
        access = self.deployed.access
        groups = {group.name: group for group in access.node_groups(self.cluster)}
        if grown is None:
            grown = [name for name, group in groups.items() if group.set_by_add]
        for name in grown:
            if name not in groups:
                raise BadInput(
                    f"--grow {name}: {self.cluster.name} has no such node group; it has: {', '.join(groups) or 'none'}"
                )
        roles = access.roles(self.cluster) if eks else ()
        registered = self.deployed.registry.get(self.cluster.name)
        return Seen(
            objects={o: [(obj, there(obj)) for obj in objects_of(o)] for o in overlays},
            roles={role: access.groups_of(self.cluster, role) for role in roles},
            groups=[groups[name] for name in grown],
            untagged=[n for n, g in groups.items() if not g.may_grow and n not in grown],
            tagged=[g for n, g in groups.items() if g.may_grow and n not in grown],
            mode=None if registered is None else registered.mode,
        )

    def carried_out(self, steps: Sequence[Step], *, yes: bool) -> bool:
        """Ask once unless `yes`, do the steps, tell of each, and return whether all are done."""
        if all(step.done for step in steps):
            say("Nothing is left to do.")
            return True
        if not yes:
            ask("Take these steps?")
        failed = SetupExecutor(
            cluster=self.cluster,
            objects=self.administered.objects,
            access=self.deployed.access,
            registry=self.deployed.registry,
        ).carry_out(steps, say)
        if failed is None:
            return True
        say(
            f"step {failed.number} failed: {failed.error}\nThe steps before it are done, and none after it was begun. "
            "Cure this, then give the same command again: it goes on from here.",
            err=True,
        )
        return False


def listed(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the lines that show steps to a person."""
    for number, step in enumerate(steps, start=1):
        yield f"{number}. {'already: ' if step.done else ''}{step.what}: {step.why}"
        if not step.done:
            yield f"   {step.command}"
