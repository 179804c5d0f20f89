"""Documents of laws: read as they were written, and refused with place and number where they are broken."""

import copy
from typing import Any

import pytest

from cost_models.hardware.laws.document import InvalidLaw, law_document, parse_laws
from cost_models.hardware.laws.shipped import law_set_names, load_law_set
from cost_models.vocabulary import Evidence
from tests.support.cost_models.laws import domain_law, hosts_law, laws

DOCUMENT: dict[str, Any] = law_document(laws(domain_law(), hosts_law("all_gather", cap=3e11)))


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the document with one member replaced, or removed where the value is ``...``."""
    document = copy.deepcopy(DOCUMENT)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    here: Any = document
    for part in parents:
        here = here[part]
    if value is ...:
        del here[last]
    else:
        here[last] = value
    return document


def test_a_document_is_read_as_it_was_written() -> None:
    assert parse_laws(DOCUMENT) == laws(domain_law(), hosts_law("all_gather", cap=3e11))


@pytest.mark.parametrize(
    ("path", "value", "place", "reason"),
    [
        ("format", "other", "/format", "shardplan-collective-laws-1"),
        ("name", ..., "", "lacks name"),
        ("colour", "red", "", "1 unknown members; known are"),
        ("domain", {}, "/domain", "a list"),
        ("domain/0/operation", "broadcast", "/domain/0/operation", "all_to_all, reduce_scatter"),
        ("domain/0/terms/3/seconds", -2e-12, "/domain/0", "term 3: expected seconds >= 0, not -2e-12"),
        ("domain/0/terms/3/seconds", 1e308, "/domain/0/terms/3/seconds", "at most 1e+18"),
        ("domain/0/terms/3/seconds", 10**400, "/domain/0/terms/3/seconds", "at most 1e+18"),
        ("domain/0/interval/0/upper", 1e308, "/domain/0/interval/0/upper", "at most 1e+18"),
        ("domain/0/num_ranks/0", 10**30, "/domain/0/num_ranks/0", "at most 1e+18"),
        ("hosts/0/num_hosts/0", 10**400, "/hosts/0/num_hosts/0", "at most 1e+18"),
        ("domain/0/terms/3/seconds", float("nan"), "/domain/0/terms/3/seconds", "finite number"),
        ("domain/0/terms/3/seconds", 0.0, "/domain/0", "expected a bandwidth"),
        ("domain/0/terms/2/up_to_bytes", 0, "/domain/0", "term 2: expected up_to_bytes > 0"),
        ("domain/0/terms/2/times", "phases", "/domain/0/terms/2/times", "rounds"),
        ("domain/0/num_ranks", [8, 4], "/domain/0", "increasing numbers of ranks"),
        ("domain/0/num_ranks/0", True, "/domain/0/num_ranks/0", "integer >= 1"),
        ("domain/0/most_bytes", 1.0, "/domain/0", "least_bytes <= most_bytes, not 1000, 1"),
        ("domain/0/evidence", "heard", "/domain/0/evidence", "measured"),
        ("domain/0/source", "", "/domain/0/source", "1 to 500"),
        ("domain/0/interval/0/lower", 1.5, "/domain/0/interval/0", "not 1.5, 1.25"),
        ("domain/0/interval", [], "/domain/0/interval", "at least one"),
        ("domain/0/interval_per_doubling_beyond", 0.5, "/domain/0/interval", "beyond >= 1, not 0.5"),
        ("hosts/0/hop_seconds", -1e-6, "/hosts/0", "hop_seconds: expected a number >= 0, not -1e-06"),
        ("hosts/0/ramps/0/seconds_per_byte", -1.0, "/hosts/0", "ramps/0/seconds_per_byte"),
        ("hosts/0/nic_bytes_per_second", 0, "/hosts/0", "nic_bytes_per_second: expected a rate >= 1, not 0"),
        ("hosts/0/nic_bytes_per_second", 1e-300, "/hosts/0", "nic_bytes_per_second: expected a rate >= 1, not 1e-300"),
        ("hosts/0/num_hosts", [1, 2], "/hosts/0", "numbers of hosts >= 2"),
    ],
)
def test_broken_documents_are_refused_with_place_and_number(path: str, value: object, place: str, reason: str) -> None:
    with pytest.raises(InvalidLaw) as raised:
        parse_laws(changed(path, value))
    assert raised.value.place == place
    assert reason in raised.value.reason


@pytest.mark.parametrize("name", law_set_names())
def test_laws_that_ship_name_their_source_range_and_rows(name: str) -> None:
    found = load_law_set(name)
    assert found.name == name
    for law in (*found.domain, *found.hosts):
        assert len(law.basis.source) > 10
        assert law.basis.num_rows >= 4
        # All-to-alls of gigabytes alone show no start: that of other machines is an estimate, and the source says so.
        is_lent = "start of other machines" in law.basis.source
        assert law.basis.evidence is (Evidence.ESTIMATED if is_lent else Evidence.MEASURED)
        assert is_lent == (name == "h100-infiniband" and law.operation == "all_to_all")


def test_unknown_laws_are_a_key_error() -> None:
    with pytest.raises(KeyError):
        load_law_set("../hardware")


def test_a_library_has_its_own_law_and_the_first_stands_for_the_others() -> None:
    found = load_law_set("b200-nvswitch")
    newest = found.domain_law("all_to_all")
    old = found.domain_law("all_to_all", "NCCL 2.27.5")
    assert newest is not None
    assert old is not None
    assert newest.basis.library == "NCCL 2.29.2"
    assert old.basis.library == "NCCL 2.27.5"
    assert found.domain_law("all_to_all", "NCCL 1.0") is newest
    assert found.domain_law("broadcast") is None
