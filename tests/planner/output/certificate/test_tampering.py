"""Whatever is changed in a certificate or in its plan is found, and each for its own reason."""

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from planner.domain.formats.canonical_json import digest, plan_digest
from planner.output.certificate import check as check_certificate
from planner.output.certificate.certify import sealed
from tests.support.planning.certificates import Document, resealed, ruled


def table_of(certificate: Document, name: str) -> int:
    return [table["name"] for table in certificate["problem"]["tables"]].index(name)


def placed(certificate: Document, name: str) -> Document:
    return certificate["plan"][table_of(certificate, name)]


def family_of(certificate: Document, name: str) -> Document:
    return certificate["problem"]["families"][placed(certificate, name)["family"]]


def leaves(certificate: Document) -> list[Document]:
    return [node["prices"] for node in certificate["proof"]["nodes"] if "prices" in node]


def splits(certificate: Document) -> list[Document]:
    return [node for node in certificate["proof"]["nodes"] if "children" in node]


def raise_bound(certificate: Document) -> None:
    certificate["claim"]["bound_seconds"] *= 1.0001


def lower_objective(certificate: Document) -> None:
    certificate["claim"]["objective_seconds"] *= 1 - 1e-6


def lower_gap(certificate: Document) -> None:
    certificate["claim"]["relative_gap"] *= 0.9


def other_objective(certificate: Document) -> None:
    certificate["problem"]["objective"] = "max_rank_time"
    certificate["proof"]["rank_weights"] = [1.0] * 4
    memory = [0.0 for _ in certificate["problem"]["tiers"]]
    certificate["proof"]["nodes"] = [{"prices": {"average": [0.999], "memory": memory, "largest": []}}]


def unknown_objective(certificate: Document) -> None:
    certificate["problem"]["objective"] = "mean_time"


def cheaper_prices(certificate: Document) -> None:
    """Of all that the plan uses."""
    for block in certificate["problem"]["prices"]:
        block["seconds"] = [[0.99 * value for value in row] for row in block["seconds"]]


def negative_prices(certificate: Document) -> None:
    certificate["problem"]["prices"][0]["seconds"][0][0] = -1e-9


def prices_of_another_option(certificate: Document) -> None:
    """A cheaper way for a table that the plan does not use, which the bound has to look at."""
    used = {item["prices"] for item in (family_of(certificate, t["name"]) for t in certificate["problem"]["tables"])}
    for index, block in enumerate(certificate["problem"]["prices"]):
        if index not in used:
            block["seconds"] = [[0.0 for _ in row] for row in block["seconds"]]
            block["bytes"], block["last_bytes"] = [[0 for _ in row] for row in block["bytes"]], None


def negative_dual(certificate: Document) -> None:
    leaves(certificate)[0]["average"][0] = -0.1


def duals_above_the_weight(certificate: Document) -> None:
    for leaf in leaves(certificate):
        leaf["average"] = [1.5 * price + 1 for price in leaf["average"]]


def no_duals(certificate: Document) -> None:
    for leaf in leaves(certificate):
        leaf["average"] = [0.0 for _ in leaf["average"]]
        leaf["largest"] = []


def a_leaf_left_out(certificate: Document) -> None:
    last_child = max(child for node in splits(certificate) for child in node["children"] if child is not None)
    for node in splits(certificate):
        node["children"] = [None if child == last_child else child for child in node["children"]]


def one_leaf_for_both_sides(certificate: Document) -> None:
    node = next(node for node in splits(certificate) if None not in node["children"])
    node["children"] = [node["children"][0]] * 2


def a_split_without_its_other_side(certificate: Document) -> None:
    node = next(node for node in splits(certificate) if None not in node["children"])
    node["children"] = node["children"][:1]


def no_such_price(certificate: Document) -> None:
    leaves(certificate)[0]["average"].append(0.0)


def memory_overfull(certificate: Document) -> None:
    """One rank has room for any one piece that it holds, and not for all of them."""
    problem = certificate["problem"]
    block = problem["prices"][family_of(certificate, "rows")["prices"]]
    problem["capacity_bytes"][3] = [2 * largest for largest in block["bytes"][0]]


def table_missing(certificate: Document) -> None:
    certificate["plan"].pop()


def piece_missing(certificate: Document) -> None:
    placed(certificate, "wide")["pieces"].pop()


def piece_twice(certificate: Document) -> None:
    placed(certificate, "one")["pieces"] *= 2


def columns_that_are_no_option(certificate: Document) -> None:
    placed(certificate, "wide")["pieces"] = [[255, 0], [1, 1]]


def no_such_site(certificate: Document) -> None:
    placed(certificate, "one")["pieces"][0][1] = 4


def a_site_counted_from_the_end(certificate: Document) -> None:
    placed(certificate, "one")["pieces"][0][1] = -1


def two_tables_swapped(certificate: Document) -> None:
    one, two = placed(certificate, "one"), placed(certificate, "two")
    one["family"], two["family"] = two["family"], one["family"]


def together_that_must_be_apart(certificate: Document) -> None:
    placed(certificate, "two")["pieces"] = copy.deepcopy(placed(certificate, "one")["pieces"])


def apart_that_must_be_together(certificate: Document) -> None:
    piece = placed(certificate, "left")["pieces"][0]
    piece[1] = (piece[1] + 1) % 4


def off_its_ranks(certificate: Document) -> None:
    placed(certificate, "low")["pieces"][0][1] = 2


def off_its_pin(certificate: Document) -> None:
    placed(certificate, "pinned")["pieces"][0][1] = 0


def on_two_hosts(certificate: Document) -> None:
    placed(certificate, "near")["pieces"][0][1] = 0
    placed(certificate, "near")["pieces"][1][1] = 3


def both_sides_of_a_rule(certificate: Document) -> None:
    """The MEAN table by rows, and the other one of its module whole."""
    families = certificate["problem"]["families"]
    wanted = {"mean": "row_wise", "beside": "table_wise"}
    for name, scheme in wanted.items():
        chosen = placed(certificate, name)
        chosen["family"] = next(
            index
            for index, family in enumerate(families)
            if family["table"] == table_of(certificate, name) and family["sharding_type"] == scheme
        )
        chosen["pieces"] = [[64, 0]]


def a_false_dominator(certificate: Document) -> None:
    """A family that is not dearer everywhere is said to be replaced."""
    families = certificate["problem"]["families"]
    preserved = [index for index, family in enumerate(families) if family["dominated_by"] is None]
    one, other = next(
        (a, b) for a in preserved for b in preserved if a != b and families[a]["table"] == families[b]["table"]
    )
    families[one]["dominated_by"] = other


def a_family_left_out(certificate: Document) -> None:
    """Its prices vanish, so that the bound would be one over fewer options."""
    certificate["problem"]["prices"].pop()


IN_THE_CERTIFICATE: list[tuple[Callable[[Document], None], str]] = [
    (raise_bound, r"a bound of .* s is proven, not .* as claimed"),
    (lower_objective, r"the plan takes .* s, not .* as claimed"),
    (lower_gap, r"a gap of .* is proven, not .* as claimed"),
    (other_objective, r"(the plan takes|a bound of) .* not .* as claimed"),
    (unknown_objective, "unknown objective"),
    (cheaper_prices, r"the plan takes .* s, not"),
    (negative_prices, "a number is negative or not finite"),
    (prices_of_another_option, r"a bound of .* is proven, not"),
    (negative_dual, "a number is negative or not finite"),
    (duals_above_the_weight, "add up to more than its weight"),
    (no_duals, r"a bound of .* is proven, not"),
    (a_leaf_left_out, "node None of the proof is missing"),
    (one_leaf_for_both_sides, "has two parents"),
    (a_split_without_its_other_side, r"zip\(\) argument"),
    (no_such_price, "expected numbers of shape"),
    (memory_overfull, "a rank holds more bytes than it has"),
    (table_missing, "the plan leaves a table out"),
    (piece_missing, r"table 8 (lacks columns|has a wrong number of pieces)"),
    (piece_twice, "table 1 has a wrong number of pieces"),
    (columns_that_are_no_option, "a piece of 255 columns is no option"),
    (no_such_site, "table 1 is on a site that does not exist"),
    (a_site_counted_from_the_end, "expected a whole number of 0 or more, found -1"),
    (two_tables_swapped, "table 1 is cut by a family of another table"),
    (together_that_must_be_apart, "tables that must stay apart share a rank"),
    (apart_that_must_be_together, "tables that must share one rank do not"),
    (off_its_ranks, "a table is on a rank that it may not use"),
    (off_its_pin, "a pinned table is elsewhere"),
    (on_two_hosts, "table 10 must keep its pieces on one host"),
    (both_sides_of_a_rule, "both sides of a rule are used"),
    (a_false_dominator, r"family \d+ does not replace another one of table"),
    (a_family_left_out, "a family has prices that are not stated"),
]


def test_the_certificate_itself_is_accepted() -> None:
    certificate, document = ruled()
    assert "the plan is legal" in check_certificate.check(certificate, document)
    assert "the plan is legal" in check_certificate.check(certificate)


def test_a_certificate_from_before_floors_and_packing_is_accepted() -> None:
    """Its leaves lack these prices, so that it claims no more than the others prove."""
    certificate, document = ruled()
    body = {key: value for key, value in certificate.items() if key not in ("proof", "claim", "certificate_digest")}
    for leaf in leaves(certificate):
        assert {"floor", "packing"} <= leaf.keys()
        del leaf["floor"], leaf["packing"]
    checked = check_certificate.Problem(body["problem"])
    older = sealed(body, checked, [certificate["proof"]], certificate["claim"]["plan_objective"])
    assert 0 < older["claim"]["bound_seconds"] <= certificate["claim"]["bound_seconds"]
    assert "the plan is legal" in check_certificate.check(older, document)


def test_it_has_what_the_changes_are_about() -> None:
    """Splits, dominated families, a rule, groups, a pin, and blocks of rows of which the last one is shorter."""
    certificate, document = ruled()
    problem = certificate["problem"]
    assert len(leaves(certificate)) > 2
    assert {key for node in splits(certificate) for key in node} >= {"rule", "phase"} or len(splits(certificate)) > 1
    assert any(family["dominated_by"] is not None for family in problem["families"])
    assert problem["rules"]
    assert problem["pinned"] == [[0, [[64, 1]]]]
    assert any(block["last_bytes"] is not None for block in problem["prices"])
    assert certificate["claim"]["plan_objective"]["seconds"] == document["objective"]["seconds"]


@pytest.mark.parametrize(("change", "reason"), IN_THE_CERTIFICATE, ids=lambda value: getattr(value, "__name__", ""))
def test_a_changed_certificate_is_rejected(change: Callable[[Document], None], reason: str) -> None:
    """Its digest is made again, so that it is not what gives the change away."""
    certificate, _ = ruled()
    change(certificate)
    with pytest.raises(ValueError, match=reason):
        check_certificate.check(resealed(certificate))


def test_a_change_without_a_new_digest_is_rejected() -> None:
    certificate, _ = ruled()
    certificate["problem"]["prices"][0]["seconds"][0][0] *= 1 + 1e-9
    with pytest.raises(ValueError, match="its content was changed"):
        check_certificate.check(certificate)
    certificate, _ = ruled()
    certificate["certificate_digest"] = "sha256:" + "0" * 64
    with pytest.raises(ValueError, match="its content was changed"):
        check_certificate.check(certificate)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_rejected(value: float) -> None:
    certificate, _ = ruled()
    leaves(certificate)[0]["memory"][0] = value
    with pytest.raises(ValueError, match="not JSON compliant"):
        check_certificate.check(certificate)
    with pytest.raises(ValueError, match="negative or not finite"):
        check_certificate.numbers([value], 1)


def shard_left_out(plan: Document) -> None:
    plan["tables"][9]["shards"].pop()


def shards_swapped(plan: Document) -> None:
    """Of two row blocks, which are of the same table and as wide."""
    one, two = plan["tables"][9]["shards"][:2]
    one["rank"], two["rank"] = two["rank"], one["rank"]


def rows_shifted(plan: Document) -> None:
    one, two = plan["tables"][9]["shards"][:2]
    one["num_rows"] += 1
    two["row_offset"] += 1
    two["num_rows"] -= 1


def another_kernel(plan: Document) -> None:
    plan["tables"][1]["compute_kernel"] = "dense"


def another_tier(plan: Document) -> None:
    plan["tables"][1]["shards"][0]["tier"] = "ddr"


def another_name(plan: Document) -> None:
    plan["tables"][1]["name"] = plan["tables"][2]["name"]


def another_world(plan: Document) -> None:
    plan["ranks_per_host"] = 4


IN_THE_PLAN: list[tuple[Callable[[Document], None], str]] = [
    (shard_left_out, "table rows is sharded otherwise"),
    (shards_swapped, "table rows is sharded otherwise"),
    (rows_shifted, "table rows is sharded otherwise"),
    (another_kernel, "table one is sharded otherwise"),
    (another_tier, "table one is sharded otherwise"),
    (another_name, "the plan has other ranks or tables"),
    (another_world, "the plan has other ranks or tables"),
]


@pytest.mark.parametrize(("change", "reason"), IN_THE_PLAN, ids=lambda value: getattr(value, "__name__", ""))
def test_a_changed_plan_is_rejected(change: Callable[[Document], None], reason: str) -> None:
    """As it is, and where plan and certificate both state the digest that it has now."""
    certificate, plan = ruled()
    change(plan)
    with pytest.raises(ValueError, match="the plan is not the certified one"):
        check_certificate.check(certificate, plan)
    plan["plan_digest"] = certificate["plan_digest"] = plan_digest(plan)
    with pytest.raises(ValueError, match=reason):
        check_certificate.check(resealed(certificate), plan)


def test_a_plan_for_another_spec_is_rejected() -> None:
    """Also if the certificate names the plan by the digest that it has with the other spec."""
    specs = ["sha256:" + "1" * 64, "sha256:" + "2" * 64]
    for of_plan, of_certificate in (specs, reversed(specs), (specs[0], specs[0])):
        certificate, plan = ruled()
        plan["spec_digest"], certificate["spec_digest"] = of_plan, of_certificate
        plan["plan_digest"] = certificate["plan_digest"] = plan_digest(plan)
        if of_plan == of_certificate:
            check_certificate.check(resealed(certificate), plan)
        else:
            with pytest.raises(ValueError, match="the plan is for another spec"):
                check_certificate.check(resealed(certificate), plan)


def test_a_false_digest_of_the_plan_is_rejected() -> None:
    certificate, plan = ruled()
    plan["plan_digest"] = "sha256:" + "0" * 64
    with pytest.raises(ValueError, match="the plan is not the certified one"):
        check_certificate.check(certificate, plan)


@pytest.mark.parametrize(("key", "value"), [("lower_bound_seconds", 1.0), ("seconds", 0.0), ("relative_gap", 0.0)])
def test_a_plan_that_states_more_than_when_it_was_certified_is_rejected(key: str, value: float) -> None:
    """The digest of a plan does not cover its objective."""
    certificate, plan = ruled()
    plan["objective"][key] = value
    with pytest.raises(ValueError, match=re.escape(f"'{key}': {value}")):
        check_certificate.check(certificate, plan)


def test_bytes_of_shards_are_derived_and_may_be_left_out() -> None:
    certificate, plan = ruled()
    for table in plan["tables"]:
        for shard in table["shards"]:
            shard.pop("bytes")
    assert check_certificate.check(certificate, plan)


def test_a_proof_without_any_plan_proves_nothing() -> None:
    certificate, _ = ruled()
    certificate["proof"]["nodes"] = [{"phase": 0, "at_seconds": 1e9, "children": [None, None]}]
    with pytest.raises(ValueError, match="node None of the proof is missing"):
        check_certificate.check(resealed(certificate))


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"a": 1', '{"certificate_digest": 1}'])
def test_what_is_no_certificate_is_rejected(content: str, tmp_path: Any, capsys: Any) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(content)
    assert check_certificate.main([str(path)]) == 1
    assert capsys.readouterr().out.startswith("REJECTED: ")
    assert digest({}) != digest([])
