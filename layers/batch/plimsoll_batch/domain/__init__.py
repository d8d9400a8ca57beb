"""All decisions of the queues: standard library and the core's domain only; the time is an argument."""
