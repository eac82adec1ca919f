"""Recorders of a real Apache Kafka broker's traffic, and tests of the recordings used by tests and demos."""
