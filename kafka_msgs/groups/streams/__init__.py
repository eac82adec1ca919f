"""The streams group protocol (KIP-1071) in a group coordinator: heartbeats, topologies and tasks."""
