"""The kinds of studies: what each asks for next, and what it answers."""
