"""One plan for several scenarios of traffic: what is minimised, the search, and every plan in every scenario."""
