"""Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup and DescribeGroups."""
