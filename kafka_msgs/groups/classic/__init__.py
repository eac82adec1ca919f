"""Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and how they are described."""
