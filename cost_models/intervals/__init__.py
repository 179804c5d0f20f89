"""Between which limits measured seconds lie around those of analytic models: facts, and how they are applied."""
