"""The random numbers of a search, in Python's whole numbers."""

_BITS = (1 << 64) - 1


class RandomNumbers:
    """splitmix64 (Steele, Lea and Flood, OOPSLA 2014); ``state`` is what a compiled search calls its seed."""

    def __init__(self, state: int) -> None:
        self.state = state

    def bits(self) -> int:
        """Return the next 53 random bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _BITS
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _BITS
        return (z ^ (z >> 31)) >> 11

    def below(self, count: int) -> int:
        """Return a whole number in [0, count)."""
        return self.bits() % int(count)

    def unit(self) -> float:
        """Return a number in [0, 1)."""
        return self.bits() / 2**53
