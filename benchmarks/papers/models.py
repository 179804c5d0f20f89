"""The models of ``examples/studies/models``: made-up tables with the totals that papers state.

    python benchmarks/papers/models.py [--out examples/studies/models]

Neo's models (Mudigere et al., ISCA 2022, arXiv 2104.05158): A with 793e9 parameters, 638 MFLOP a sample, about 93
columns and 15 ids a table, F with 12e12 parameters in tables of 256 columns and 20 ids. Tables of A are drawn like
Meta's public ones of 2021 (:mod:`benchmarks.inputs.meta_like`) and those that are not tiny grow until the total is met.
MTrainS (arXiv 2305.01515) names terabytes and no tables: 12 TB are ours. The other two have a size that the papers
leave open.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs.meta_like import draw_tables

OUT = Path(__file__).resolve().parents[2] / "examples" / "studies" / "models"
F_TABLES, F_COLUMNS, F_PARAMETERS = 24, 256, 12e12
_FP32_BYTES = 4


def drawn_tables(
    num_tables: int, num_parameters: float, *, seed: int, most_rows: float, multiple: int = 1
) -> list[dict[str, Any]]:
    """Return tables like Meta's with so many parameters in all, none with more than ``most_rows`` rows.

    Rows are rounded up to a ``multiple``.
    """
    drawn = draw_tables(np.random.default_rng(seed), num_tables)
    fixed = float((drawn.rows * drawn.dims)[~drawn.is_scalable].sum())

    def grown(factor: float) -> np.ndarray:
        return np.where(drawn.is_scalable, np.minimum(drawn.rows * factor, most_rows), drawn.rows)

    low, high = 0.0, 1e6
    for _ in range(200):
        factor = (low + high) / 2
        total = fixed + float((grown(factor) * drawn.dims)[drawn.is_scalable].sum())
        low, high = (factor, high) if total < num_parameters else (low, factor)
    tables = []
    for index, rows in enumerate((np.ceil(grown(low) / multiple).astype(np.int64) * multiple).tolist()):
        table: dict[str, Any] = {"name": f"t{index}", "num_embeddings": rows, "embedding_dim": int(drawn.dims[index])}
        pooling = float(drawn.pooling_factors[index])
        table["pooling_factor"] = pooling
        if pooling > 0:
            table["access"] = {"zipf_alpha": float(drawn.zipf_alphas[index]), "ids": "hashed"}
        tables.append(table)
    return tables


def specs() -> dict[str, dict[str, Any]]:
    """Return the specs by name."""
    return {
        "neo_a": spec(
            "Neo's model A: 793e9 parameters",
            drawn_tables(856, 793e9, seed=0, most_rows=6e7),
            hardware={"profile": "zionex-a100-40g", "num_hosts": 16, "ranks_per_host": 8},
            # Weights of fully connected layers: half of the operations of a sample.
            dense={"forward_flops_per_sample": 638e6, "compute_dtype": "tf32", "parameter_bytes": 319e6 * 4},
        ),
        "neo_f": spec(
            "Neo's model F: 12e12 parameters",
            [
                {
                    "name": f"t{index}",
                    "num_embeddings": int(F_PARAMETERS / F_COLUMNS / F_TABLES),
                    "embedding_dim": F_COLUMNS,
                    "pooling_factor": 20,
                    "access": {"zipf_alpha": 1.05, "ids": "hashed"},
                }
                for index in range(F_TABLES)
            ],
            hardware={"profile": "zionex-a100-40g", "num_hosts": 16, "ranks_per_host": 8},
            constraints={"reserved_hbm_fraction": 0.05},
        ),
        "cvr": spec(
            "a conversion model on 32 trainers",
            # Row blocks of small tables must not be empty on any of 32 ranks.
            drawn_tables(120, 40e9, seed=1, most_rows=4e7, multiple=32),
            hardware={"profile": "zionex-prototype-v100-32g", "num_hosts": 4, "ranks_per_host": 8},
        ),
        "terabytes": spec(
            "12 TB of tables",
            drawn_tables(160, 12e12 / _FP32_BYTES, seed=2, most_rows=1e9),
            hardware={"profile": "zionex-a100-40g", "num_hosts": 8, "ranks_per_host": 8},
            runtime="generic",  # TorchRec has no tables in storage-class memory
        ),
        "checkpointed": spec(
            "tables of a job whose checkpoints are 1.3 billion samples apart",
            drawn_tables(200, 500e9, seed=3, most_rows=6e7),
            hardware={"profile": "zionex-prototype-v100-32g", "num_hosts": 16, "ranks_per_host": 8},
        ),
    }


def spec(name: str, tables: list[dict[str, Any]], *, hardware: dict[str, Any], **given: Any) -> dict[str, Any]:
    """Return a spec of 512 samples a rank whose search takes a few seconds."""
    model: dict[str, Any] = {"batch_size_per_rank": 512, "tables": tables}
    if "dense" in given:
        model["dense"] = given.pop("dense")
    solver = {"time_limit_seconds": 30, "work_limit_seconds": 3}
    return {"name": name, "model": model, "hardware": hardware, "solver": solver, **given}


def text_of(document: dict[str, Any]) -> str:
    """Return a spec as JSON with a line for each table."""
    tables = ",\n  ".join(json.dumps(table) for table in document["model"]["tables"])
    rest = {**document, "model": {**document["model"], "tables": "TABLES"}}
    return json.dumps(rest, indent=1).replace('"TABLES"', f"[\n  {tables}]") + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write every spec."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    for name, document in specs().items():
        path = given.out / f"{name}.json"
        path.write_text(text_of(document))
        print(f"{path.name}: {len(document['model']['tables'])} tables, {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
