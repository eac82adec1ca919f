"""Share groups (KIP-932): members, target assignments and heartbeats. What is in share partitions is not here."""
