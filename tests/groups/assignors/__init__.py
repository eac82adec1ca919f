"""Tests of the assignors: equal to Kafka's own on random groups, balanced, and sticky."""
