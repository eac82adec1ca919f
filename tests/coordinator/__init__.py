"""Group coordinators against Kafka's own: the same commands to both, and every difference is an error."""
