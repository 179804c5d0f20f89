"""Which rows a step touches: distinct rows, cache misses, hot rows, modified rows, and sketches of id traces."""
