"""The database: what the service stores, and the records and repositories that read and write it."""
