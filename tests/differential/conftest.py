"""One real control plane for all scenarios that were selected, and the score at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll_cli import main
from plimsoll_testbed.rigs.controlplane import ControlPlane as RealControlPlane
from tests.differential.scenario import Scenario
from tests.differential.trials import Score, Trials
from tests.differential.watched import ControlPlane
from tests.differential.webhook_server import WebhookServer

_SCORE = pytest.StashKey[Score]()


@pytest.fixture(scope="session")
def score(request: pytest.FixtureRequest) -> Score:
    """What the summary at the end of the session tells."""
    return request.config.stash.setdefault(_SCORE, Score())


@pytest.fixture(scope="session")
def trials(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Trials]:
    """All selected scenarios, at play."""
    with RealControlPlane() as real:
        installed = ["install-policy", "--kubeconfig", str(real.kubeconfig())]
        real.transport().call("POST", "/api/v1/namespaces", body={"metadata": {"name": NAMESPACE}})
        done = CliRunner().invoke(main, installed)
        assert done.exit_code == 0, done.output
        webhooks = WebhookServer(tmp_path_factory.mktemp("webhooks"))
        plane = ControlPlane(real.access("admin"), webhooks)
        chosen = [
            scenario
            for item in request.session.items
            if isinstance(item, pytest.Function) and "trials" in item.fixturenames
            if isinstance(scenario := item.callspec.params["scenario"], Scenario)
        ]
        trials = Trials(chosen, plane)
        try:
            yield trials
        finally:
            trials.close()
            plane.close()
            webhooks.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many scenarios of each family agreed."""
    score = terminalreporter.config.stash.get(_SCORE, None)
    lines = score.told() if score is not None else []
    if lines:
        terminalreporter.section("fake and real cluster")
        for line in lines:
            terminalreporter.write_line(line)
