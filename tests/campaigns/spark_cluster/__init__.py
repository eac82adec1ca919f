"""A campaign over a standalone cluster of Spark whose executors are killed in the middle."""
