"""Which files of tests take longest, and therefore start first: none runs alone at the end of ``make test``."""

import pytest

#: Longest first; below ``tests``. A file that takes half a minute or more belongs here.
LONGEST = (
    "architecture/test_docs.py",
    "api/cli/service/test_run_server.py",
    "benchmarks/prices/test_real_steps.py",
    "api/http/openapi/test_properties.py",
    "torchrec/test_training.py",
    "api/execution/test_engine.py",
    "api/cli/test_fetch.py",
    "api/cli/service/test_run_worker.py",
    "api/cli/test_demo.py",
    "reliability/test_database_outage.py",
    "api/http/pages/test_key_browser.py",
    "api/http/pages/test_accessibility_browser.py",
    "api/http/pages/test_pages_browser.py",
    "api/http/pages/test_actions_browser.py",
    "api/http/pages/test_charts_browser.py",
    "properties/test_replans.py",
    "properties/test_ways_of_asking.py",
    "planner/verification/test_oracle.py",
    "planner/solver/bounds/test_bounds.py",
    "planner/solver/partitioners/exact/test_mathopt.py",
)


def longest_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return tests with those of the longest files in front, and all others in their order."""
    turn = {f"tests/{name}": number for number, name in enumerate(LONGEST)}
    return sorted(items, key=lambda item: turn.get(item.nodeid.partition("::")[0], len(LONGEST)))
