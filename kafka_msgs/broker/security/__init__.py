"""Who a client is, and what it may do: SASL logins, SCRAM credentials and ACLs. There is no socket here."""
