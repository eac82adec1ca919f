"""Chaos campaign: random clients, faults, leader moves and outages in a bounded run, with checks of invariants.

    python -m tests.campaigns.chaos --seed 1 --minutes 10
    python -m tests.campaigns.chaos --minutes 10 --seconds 10 --kind real
    python -m tests.campaigns.chaos --minutes 10 --seconds 10 --kind killed

``history`` records promises to clients, and reports broken ones. ``ownership_checker`` tracks partition owners.
``workers`` are clients of this library over a ``BrokerNetwork``, and ``simulation`` runs them in simulated time,
reproducibly by seed. ``clients`` and ``consume_transform_produce`` are real clients over sockets, of this library and
of other libraries; they share the ``Run`` of ``run``, and ``sockets`` runs them. ``settings`` defines the faults.
"""
