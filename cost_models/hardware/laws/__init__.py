"""Laws of collectives: seconds over bytes and ranks, fitted to measurements; their documents and those that ship."""
