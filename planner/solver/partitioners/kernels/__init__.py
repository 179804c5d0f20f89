"""The inner loops of searches, compiled: one state of arrays, what it costs, and the moves that change it."""
