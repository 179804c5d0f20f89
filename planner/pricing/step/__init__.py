"""The step: its phases, what it starts, and what it takes as a whole."""
