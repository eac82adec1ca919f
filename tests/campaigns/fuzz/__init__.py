"""Coverage-guided fuzzing of the C core: ``make fuzz MINUTES=5``.

``messages``, ``parts``, ``records``, ``columns`` and ``headers`` say what must hold for every input and where inputs
start from, ``targets`` names them, ``seeds`` writes where inputs start from, ``__main__`` runs the fuzzer.
"""
