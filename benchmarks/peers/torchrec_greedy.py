"""TorchRec's planner at the costs of its own dumps: its four proposers and its greedy packing.

python benchmarks/peers/torchrec_greedy.py DUMP.options.json.gz ...
"""

import argparse
import sys
from pathlib import Path

from benchmarks.peers.torchrec_options import MILLISECONDS_PER_SECOND, read_dump
from planner.orchestration.baselines.torchrec_search import search


def main(arguments: list[str] | None = None) -> int:
    """Plan dumps of TorchRec's enumerated options; print one line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dumps", type=Path, nargs="+", help="NAME.options.json.gz")
    parser.add_argument("--sort-by", choices=("bytes", "seconds"), default="bytes")
    given = parser.parse_args(arguments)
    for path in given.dumps:
        result = search(*read_dump(path), sort_by=given.sort_by)
        print(
            f"{path.name.split('.')[0]:<16} {result.max_rank_seconds * MILLISECONDS_PER_SECOND:9.4f} ms  "
            f"{result.proposer:<20} {result.num_packed} of {result.num_proposals} proposals packed, "
            f"{result.wall_seconds:.1f} s",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
