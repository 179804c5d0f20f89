"""Certificates: a plan, its options with their prices, and dual data from which anyone can work out a bound again.

:mod:`planner.check_certificate` checks them, and shares no code with what makes them.
"""
