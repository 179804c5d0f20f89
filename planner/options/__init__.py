"""Every legal way to shard a table, by scheme and by runtime."""
