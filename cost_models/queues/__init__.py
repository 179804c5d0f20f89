"""How long work waits for a server that is busy."""
