"""Coverage-guided fuzzing of the C core: ``make fuzz MINUTES=5``.

``messages``, ``parts``, ``records``, ``columns`` and ``headers`` define properties of every input and initial inputs,
``targets`` lists them, ``seeds`` writes the initial inputs, and ``__main__`` runs the fuzzer.
"""
