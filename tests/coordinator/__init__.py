"""Group coordinators compared with Kafka's own: both run the same commands, and every difference is an error."""
