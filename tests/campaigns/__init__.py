"""Long-running campaigns that complement the tests; the tests run a bounded part of each campaign."""
