"""Certificates: a plan, its options with their prices, and dual data from which anyone can work out a bound again.

:mod:`planner.output.certificate.check` checks them, and shares no code with what makes them.
"""
