"""Group coordinators as state machines: classic, consumer, share and streams groups, and committed offsets.

There is no socket, clock, thread or random number here. ``GroupCoordinator`` takes requests with the time, and gives
answers and records. Import the names from the modules, so that each part costs only what it needs.
"""
