"""Documents of the HTTP contract as pydantic models, and the kinds of its errors."""
