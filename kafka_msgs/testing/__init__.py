"""Help for testing code that speaks the Kafka protocol.

``strategies`` makes Hypothesis strategies out of the generated classes (extra ``testing``); ``random_values`` makes
values from a seeded random generator and needs no extra.
"""
