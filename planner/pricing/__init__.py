"""Bytes and seconds of shards; the only caller of cost models."""
