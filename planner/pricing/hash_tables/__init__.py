"""What the slots of hash tables take in addition to their rows, and what finding and keeping them costs in a step."""
