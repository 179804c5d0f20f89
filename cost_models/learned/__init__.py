"""Costs learned from measurements: physics first, a correction second, and how far it is known.

``lookups/`` is the compute model, ``exchange/`` that of collectives, ``ranks/`` adds both up by rank, ``reach/`` says
how far measurements go and what holds beyond, ``document/`` reads and writes files of models.
"""
