"""The logs of partitions."""
