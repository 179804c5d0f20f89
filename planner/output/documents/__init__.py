"""What plan documents consist of: every field with its type, its description and an example."""
