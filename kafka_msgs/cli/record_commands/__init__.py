"""The common parts of ``consume`` and ``produce``.

``start_positions`` selects partitions and offsets, ``consumption`` reads and commits, ``record_filters`` selects
records, and ``record_printers`` prints them. ``record_input`` parses the records of ``produce``. ``registry_payloads``
converts payloads of a schema registry.
"""
