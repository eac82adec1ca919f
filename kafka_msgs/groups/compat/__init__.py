"""Behaviour that only a comparison with Kafka's own coordinator needs: faults of one release.

Everything here is off by default. ``Quirks.from_release`` enables all of it.
"""
