"""Share groups (KIP-932): members, target assignments and heartbeats, without the contents of share partitions."""
