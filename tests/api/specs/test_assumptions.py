"""Every default and every hardware number is told, with its evidence."""

from api.specs.parse import parse_spec
from planner.domain.plan.plan import Assumption
from tests.support.service.specs import raw, tiny


def assumptions(**changes: object) -> dict[str, Assumption]:
    found = parse_spec(raw(tiny(**changes))).assumptions
    assert len({item.subject for item in found}) == len(found)
    return {item.subject: item for item in found}


def test_defaults_are_reported_and_given_fields_are_not() -> None:
    reported = assumptions()
    assert reported["model.pipeline"].value == "train_sparse_dist"
    assert reported["constraints.reserved_hbm_fraction"].value == "0.15"
    assert reported["solver.reproducible"].value == "true"
    assert reported["cost_model"].evidence == "default"
    assert "solver.time_limit_seconds" not in reported  # the tiny spec gives it
    assert "hardware.num_hosts" not in reported


def test_types_on_the_wire_are_left_to_the_cost_model() -> None:
    assert assumptions()["model.output_dtype"].value == "left to the cost model: fp32"
    left = assumptions(cost_model="torchrec", model__output_dtype=None)["model.output_dtype"]
    assert left.value == "left to the cost model: the type of each table"
    assert "model.output_dtype" not in assumptions(model__output_dtype="fp16")


def test_defaults_of_tables_are_counted() -> None:
    reported = assumptions(model__tables__0__optimizer="adam")
    assert reported["model.tables.optimizer"].value == "rowwise_adagrad"
    assert "for 1 of 2 tables" in reported["model.tables.optimizer"].source


def test_hardware_numbers_carry_evidence_and_source() -> None:
    reported = assumptions(hardware__overrides={"hbm_bytes": 5e10})
    assert reported["hardware.hbm_bytes"].evidence == "given"
    rate = reported["hardware.hbm_bytes_per_second"]
    assert rate.evidence in ("measured", "datasheet", "estimated")
    assert rate.source
    assert reported["hardware.all_to_all_law"].evidence == "measured"
    by_rank = assumptions(hardware__overrides={"hbm_bytes_by_rank": [5e10, 6e10]})["hardware.hbm_bytes_by_rank"]
    assert by_rank.value == "50000000000 to 60000000000 bytes"
    overrides = {"relative_speed_by_rank": [1, 0.5]}
    speeds = assumptions(hardware__overrides=overrides)["hardware.relative_speed_by_rank"]
    assert (speeds.value, speeds.evidence) == ("0.5 to 1 of the profile's speed", "given")


def test_values_are_reported_as_a_spec_says_them() -> None:
    reported = assumptions(hardware__overrides={"hbm_bytes": 12 * 2**30}, checkpoint={"interval_steps": 100})
    assert reported["hardware.hbm_bytes"].value == "12884901888 bytes"
    assert reported["model.dense.parameter_bytes"].value == "0"
    assert (
        reported["constraints.reserved_collective_bytes"].value == "not given: the margin holds communication buffers"
    )
    assert reported["checkpoint.upload_bytes_per_second"].value == "1000000000 bytes_per_second"
    values = [one.value for one in reported.values()]
    assert not [value for value in values if "None" in value or "e+" in value or value.endswith(".0")]


def test_unused_tables_are_one_note_with_at_most_ten_names() -> None:
    tables = [{"name": f"t{i}", "num_embeddings": 10, "embedding_dim": 4, "pooling_factor": 0} for i in range(12)]
    note = assumptions(model__tables=tables)["model.tables"]
    assert note.evidence == "note"
    assert note.value.startswith("12 never looked up")
    assert note.value.endswith("and 2 more")


def test_the_narrowest_column_piece_is_reported_where_tables_may_be_cut_by_columns() -> None:
    # 64 columns can be two pieces of 32; 32 cannot be cut, and a table that says so itself assumes nothing.
    subject = "model.tables.constraints.min_partition"
    wide = {"num_embeddings": 10, "embedding_dim": 64, "pooling_factor": 1.0}
    reported = assumptions(model__tables=[{"name": "a", **wide}, {"name": "b", **wide, "embedding_dim": 32}])[subject]
    assert (reported.value, reported.evidence) == ("32 columns", "default")
    assert "for 1 of 2 tables" in reported.source
    assert subject not in assumptions(model__tables=[{"name": "a", **wide, "constraints": {"min_partition": 16}}])
    by_rows = {"sharding_types": ["row_wise", "data_parallel"]}
    assert subject not in assumptions(model__tables=[{"name": "a", **wide, "constraints": by_rows}])
    # A sequence table is cut by columns with column_wise, and with nothing else.
    host_columns = {"sharding_types": ["table_column_wise", "grid_shard"]}
    sequence = {"name": "a", **wide, "pooling": "none", "constraints": host_columns}
    assert subject not in assumptions(model__tables=[sequence])
