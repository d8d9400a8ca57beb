"""One cluster, as the planner of its queues reads and writes it."""
