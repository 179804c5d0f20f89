"""Studies: questions that take many plans. Pure: each kind says which points come next, and what their plans mean."""
