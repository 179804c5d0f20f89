"""Numbers and counts as people read them."""
