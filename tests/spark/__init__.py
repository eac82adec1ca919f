"""Kafka's files and messages as tables of Spark."""
