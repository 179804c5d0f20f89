"""Bytes: what shards, caches, stashes and the buffers of a step take, and what tiers carry."""
