"""Use cases, one folder per resource: what routes and commands ask for."""
