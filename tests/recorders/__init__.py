"""Traffic of a real Apache Kafka broker: the tools that record it, and the recordings that tests and demo read."""
