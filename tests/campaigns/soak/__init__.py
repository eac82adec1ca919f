"""A soak of clients under faults: Python, C, Java and Go clients, the embedded broker and real Kafka nodes.

Every client is a process that writes and reads its own topic. The campaign breaks brokers and connections in fourteen
ways, checks that no acknowledged record is lost, repeated or out of order, and prints the recovery times of all clients
side by side. Run ``make soak MINUTES=20``.
"""
