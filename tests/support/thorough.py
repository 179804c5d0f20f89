"""What ``make thorough`` runs, and ``make test`` leaves out.

``make test`` runs one test of each kind that guards a promise. A test of the same kind with another moment, database,
route or size is marked ``thorough``. Tests that try a sample of many cases try all of them under ``THOROUGH``.
"""

import os

import pytest

#: Set by ``make thorough``. The service reads variables that begin with SHARDPLAN_, so this one does not.
VARIABLE = "TESTS_THOROUGH"
THOROUGH = bool(os.environ.get(VARIABLE))

thorough = pytest.mark.thorough
