"""Group coordinators as state machines: classic, consumer, share and streams groups, and committed offsets.

This package uses no sockets, clocks, threads or random numbers. ``GroupCoordinator`` takes requests with the current
time, and returns responses and records. Import names from the submodules, so that a program loads only the modules that
it uses.
"""
