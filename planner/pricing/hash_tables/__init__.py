"""What the slots of hash tables take beside their rows, and what finding and keeping them costs in a step."""
