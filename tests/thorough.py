"""Tests of half a minute each that ``make thorough`` runs: what they look at has shorter tests as well."""

import os

import pytest

thorough = pytest.mark.skipif(
    not os.environ.get("SHARDPLAN_MANY_ROUNDS"), reason="SHARDPLAN_MANY_ROUNDS=1 (make thorough) runs it"
)
