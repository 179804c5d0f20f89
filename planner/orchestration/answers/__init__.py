"""From what searches find to an answer: incumbents, finished plans, and what their gap is."""
