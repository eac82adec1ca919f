"""A campaign on a standalone Spark cluster whose executors are killed during a read, a job and a stream."""
