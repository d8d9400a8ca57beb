"""Queues that share quota: their configuration, the arithmetic of quotas, shares, order and preemption.

The semantics are those of Kueue's ClusterQueues and Cohorts: https://kueue.sigs.k8s.io/docs/concepts/
"""
