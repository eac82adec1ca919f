"""Consumer groups of the new protocol (KIP-848), including members of the classic protocol."""
