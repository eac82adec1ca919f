"""Long runs that stand beside the tests; the tests run a bounded share of each."""
