"""Authentication and authorization: SASL, SCRAM credentials and ACLs, without sockets."""
