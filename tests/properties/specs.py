"""Small specs made up by hypothesis: JSON as a user would write it, shorthand and all."""

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from cost_models.vocabulary import Scheme

NAMES = ("user", "item", "ad/creative", "0:a.b", "x[0]|y(1)", "_")
Json = dict[str, Any]


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """An object with any of these keys."""
    return st.fixed_dictionaries({}, optional=fields)


def factors() -> st.SearchStrategy[float]:
    """Pooling factors, written as whole numbers or not."""
    return st.sampled_from((0, 1, 2.5, 30))


def access() -> st.SearchStrategy[Json]:
    """What is known of the rows that are looked up."""
    return st.sampled_from(
        (
            {"zipf_alpha": 1.05},
            {"zipf_alpha": 0},
            {"access_cdf": [[0.1, 0.7], [1, 1]]},
            {"reuse_histogram": [5, 3, 1, *[0] * 14]},
            {"miss_ratio_curve": [[0, 1], [0.5, 0.2]]},
            {"zipf_alpha": 1.05, "ids": "frequency_sorted"},
            {"reuse_histogram": [5, 3, 1, *[0] * 14], "ids": "frequency_sorted"},
            {
                "access_cdf": [[0.1, 0.7], [1, 1]],
                "row_cdf": [[0.2, 0.9], [1, 1]],
                "distinct_row_cdf": [[0.2, 0.5], [1, 1]],
            },
            {"miss_ratio_curve": [[0, 1], [0.5, 0.2]], "row_cdf": [[0.8, 0], [1, 1]]},
            {"ids": "hashed"},
        )
    )


@st.composite
def tables(draw: st.DrawFn, name: str, num_hosts: int, ranks_per_host: int) -> Json:
    """A table; nearly everything may be left out."""
    world = num_hosts * ranks_per_host
    table: Json = {
        "name": name,
        "num_embeddings": draw(st.integers(1, 20_000)),
        "embedding_dim": draw(st.sampled_from((4, 16, 64, 100, 128))),
    }
    if draw(st.booleans()):
        table["pooling_factor"] = draw(factors())
    else:
        table["features"] = [
            {"name": f"{name}_{i}", "pooling_factor": draw(factors())} | draw(optional(num_poolings=st.just(2)))
            for i in range(draw(st.integers(1, 3)))
        ]
    stored = draw(st.sampled_from(({}, {}, {"data_type": "fp16"}, {"data_type": "fp16", "optimizer": "none"})))
    trained = {} if "optimizer" in stored else draw(optional(optimizer=st.sampled_from(("sgd", "adam", "lamb"))))
    limits = draw(
        optional(
            sharding_types=st.lists(st.sampled_from(Scheme.labels()), min_size=2, max_size=9).filter(
                lambda s: len(s) <= 7
            ),
            min_partition=st.sampled_from((4, min(40, table["embedding_dim"]))),
        )
    )
    where = st.fixed_dictionaries({"ranks": st.lists(st.integers(0, world - 1), min_size=1, max_size=world)})
    where |= st.fixed_dictionaries({"hosts": st.lists(st.integers(0, num_hosts - 1), min_size=1, max_size=num_hosts)})
    limits |= draw(st.just({}) | where)
    more = draw(
        optional(
            pooling=st.sampled_from(("sum", "mean", "none")),
            is_weighted=st.booleans(),
            access=access(),
            module_path=st.sampled_from(("", "sparse.ebc")),
        )
    )
    if more.get("module_path"):  # a module holds one kind of tables
        if more.get("pooling") == "none":
            more["module_path"] = f"sparse.ec{table['embedding_dim']}"
        if more.get("is_weighted"):
            more["module_path"] += ".weighted"
    if "reuse_histogram" in more.get("access", {}):
        table["num_embeddings"] = max(table["num_embeddings"], 9)  # the distinct rows of the histogram
    free = draw(st.sampled_from((True, True, False)))
    return table | stored | trained | more | ({} if free else {"constraints": limits})


@st.composite
def specs(draw: st.DrawFn) -> Json:
    """A spec of one to four tables on one to six ranks, with little memory or plenty of it."""
    num_hosts, ranks_per_host = draw(st.sampled_from(((1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (3, 2))))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    joint: Json = draw(optional(reserved_hbm_fraction=st.sampled_from((0, 0.3))))
    if len(names) > 1 and draw(st.sampled_from((False, False, True))):
        joint[draw(st.sampled_from(("same_rank", "apart")))] = [names[:2]]
    model = {
        "batch_size_per_rank": draw(st.sampled_from((1, 64, 4096))),
        "tables": [draw(tables(name, num_hosts, ranks_per_host)) for name in names],
    }
    model |= draw(
        optional(
            forward_comm_dtype=st.sampled_from(("fp32", "fp16", "int8")),
            backward_comm_dtype=st.sampled_from(("fp32", "bf16")),
            output_dtype=st.sampled_from(("fp32", "fp16")),
            dense=optional(forward_seconds=st.just(1e-4), parameter_bytes=st.just(1000)),
            pipeline=st.sampled_from(("none", "train_prefetch_sparse_dist")),
        )
    )
    spec = {
        "model": model,
        "hardware": {
            "profile": draw(st.sampled_from(("dgx-h100-80g", "mi300x-8x-400g"))),
            "num_hosts": num_hosts,
            "ranks_per_host": ranks_per_host,
            "overrides": draw(optional(hbm_bytes=st.sampled_from((11_000_000, 40_000_000, 1e9)))),
        },
        "constraints": joint,
        "solver": {"time_limit_seconds": 0.3} | draw(optional(partitioner=st.sampled_from(("greedy", "cp_sat")))),
    }
    return spec | draw(
        optional(
            schema_version=st.just(1),
            name=st.sampled_from(("small", "A model, v2")),
            objective=st.sampled_from(("step_time", "max_rank_time")),
            cost_model=st.sampled_from(("roofline", "torchrec")),
            runtime=st.just("torchrec"),
        )
    )


#: In the place of values: most are wrong in most places.
WRONG = (None, True, -1, 0, 3, 1e30, "", "x", "table_wise", [], {}, [3], {"a": 1})


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values inside of a document."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(value[key], (*path, key))


@st.composite
def broken_specs(draw: st.DrawFn) -> Json:
    """A spec with one to four slips: a value of another kind, a field left out or misspelt, an item twice."""
    spec = copy.deepcopy(draw(specs()))
    for _ in range(draw(st.integers(1, 4))):
        *parents, last = draw(st.sampled_from([*places(spec)]))
        place: Any = spec
        for part in parents:
            place = place[part]
        slip = draw(st.sampled_from(("value", "left out", "misspelt", "twice")))
        if slip == "left out":
            del place[last]
        elif slip == "misspelt" and isinstance(place, dict):
            place[f"{last}s"] = place.pop(last)
        elif slip == "twice" and isinstance(place, list):
            place.append(copy.deepcopy(place[last]))
        else:
            place[last] = copy.deepcopy(draw(st.sampled_from(WRONG)))
    return spec
