"""Constants of the measured optimizer step."""

LEARNING_RATE = 0.01


EPSILON = 1e-8


#: What rows hold at first. It is written: memory that never was is one page of zeros, which no cache ever misses.
INITIAL_WEIGHT = 0.01
