"""Assignors: equal to Kafka's own on random groups, balanced, and sticky."""
