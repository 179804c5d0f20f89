"""Hardware profiles: numbers with their source and evidence."""
