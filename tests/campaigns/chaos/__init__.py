"""Chaos: random clients, faults, moves and outages for a bounded run, and what must hold whatever happens.

    python -m tests.campaigns.chaos --seed 1 --minutes 10
    python -m tests.campaigns.chaos --minutes 10 --seconds 10 --kind real
    python -m tests.campaigns.chaos --minutes 10 --seconds 10 --kind killed

``history`` keeps what clients were promised, and says which promises were broken. ``ownership_checker`` watches who
owns which partition. ``workers`` are clients of this library over a ``BrokerNetwork``, and ``simulation`` is a run of
them: no time passes, and a seed repeats it. ``clients`` and ``consume_transform_produce`` are real clients over
sockets, of this library and others, with the ``Run`` of ``run`` in common, and ``sockets`` is a run of them.
``settings`` says what may go wrong.
"""
