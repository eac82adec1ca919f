"""Coverage-guided fuzzing of the C cores: ``make fuzz MINUTES=5``.

``messages`` and ``records`` say what must hold for every input and where inputs start from, ``seeds`` writes those,
``__main__`` runs the fuzzer.
"""
