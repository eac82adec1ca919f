"""Consumer groups of the new protocol (KIP-848), with members that still speak the classic one."""
