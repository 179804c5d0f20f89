"""``tour``: five minutes of guided use, with the real commands on a small model that comes with shardplan."""
