"""What keeps a machine from being measured; messages are for people."""


class CannotMeasure(Exception):
    """Nothing can be measured here: what is missing, and the way out."""


class OtherRun(Exception):
    """A file that a run cannot go on with: it was measured elsewhere, or otherwise."""


class RanksLost(Exception):
    """The ranks that measure collectives and copies could not start, or one of them ended."""
