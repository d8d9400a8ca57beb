"""How close the heuristics of the queues come to what is possible at all, on instances small enough to prove it."""

from __future__ import annotations

import random
from statistics import mean

from tests.support.exact_queues import fits, least_stopped, most_work, size_of
from tests.support.queued import (
    a_cohort,
    a_configuration,
    a_gang,
    a_gpu_node,
    a_queue,
    a_shape,
    admitted,
    planned,
    runs,
    victims,
)
from tests.unit.batch.quota.test_preemption import LOWER

INSTANCES = 60


def test_admitted_work_is_never_more_than_possible_and_mostly_close_to_it():
    parts = []
    for seed in range(INSTANCES):
        draw = random.Random(seed)
        configuration = a_configuration(
            a_cohort(),
            *(
                a_queue(
                    name,
                    draw.randint(4, 16),
                    borrow=draw.choice([None, 0, 4]),
                    lend=draw.choice([None, 0, 4]),
                )
                for name in "abc"
            ),
        )
        gangs = [a_gang(f"g{n:02}", draw.choice("abc"), draw.randint(1, 9)) for n in range(12)]
        started = set(admitted(planned(configuration, gangs)))
        work = sum(size_of(gang) for gang in gangs if gang.name in started)
        best = most_work(configuration, gangs)
        assert work <= best
        parts.append(work / best)
    assert mean(parts) > 0.9


def test_victims_are_at_least_what_has_to_stop_and_mostly_not_much_more():
    extra = []
    for seed in range(INSTANCES):
        draw = random.Random(seed)
        sizes = {f"r{n}": draw.randint(1, 6) for n in range(8)}
        configuration = a_configuration(a_queue("q", sum(sizes.values()), None, preemption=LOWER))
        running = [runs(a_gang(name, "q", size)) for name, size in sizes.items()]
        need = draw.randint(1, sum(sizes.values()))
        stopped = victims(planned(configuration, [a_gang("new", "q", need, priority=1)], running))[
            "new"
        ]
        least = least_stopped(sizes, need)
        freed = sum(sizes[name] for name in stopped)
        assert freed >= least
        extra.append(freed / least - 1)
    assert mean(extra) < 0.25


def test_no_gang_is_promised_a_place_that_it_cannot_have_and_few_places_are_overlooked():
    possible = found = 0
    for seed in range(INSTANCES):
        draw = random.Random(seed)
        nodes = [draw.randint(2, 8) for _ in range(4)]
        roles = [(f"r{n}", draw.randint(1, 3), draw.randint(1, 4)) for n in range(3)]
        pods = [gpus for _, number, gpus in roles for _ in range(number)]
        configuration = a_configuration(a_queue("q", 1000, None))
        plan = planned(
            configuration,
            [a_gang("g", "q", shape=a_shape(roles=roles))],
            nodes=[a_gpu_node(f"n{n}", size) for n, size in enumerate(nodes)],
        )
        exact = fits(pods, nodes)
        assert exact or not plan.admitted
        possible += exact
        found += bool(plan.admitted)
    assert possible > 15
    assert found >= 0.8 * possible
