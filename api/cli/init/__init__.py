"""``init``: a first spec, by questions or out of a file that a model, a planner or a spreadsheet left."""
