"""Tests of Kafka's files and messages as Spark tables."""
