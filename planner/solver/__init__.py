"""Arrays in, arrays out: bounds and partitioners, which know no table, scheme or cost model."""
