"""One plan for several scenarios of traffic."""
