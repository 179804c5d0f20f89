"""How well prices are known: intervals of analytic and of learned models."""
