"""``fit --laws``: laws of collectives out of measured rows, as a document and in words."""

import json
from collections.abc import Iterator

import numpy as np

from api.cli.errors import BadInput, echo, wrapped
from api.cli.files import write_content
from cost_models.fitting.law_set import fit_law_set
from cost_models.hardware.laws.document import law_document
from cost_models.hardware.laws.domain_law import Basis
from cost_models.hardware.laws.intervals import Intervals
from cost_models.hardware.laws.law_set import LawSet
from cost_models.measurements.schema import Measurements
from cost_models.text.number_text import counted


def write_laws(rows: Measurements, path: str, *, name: str, domain_ranks: int | None, quiet: bool) -> None:
    """Write the laws of measured collectives; refuse rows that none can be fitted to, with the number."""
    try:
        laws, odd = fit_law_set(rows, name=name, domain_ranks=domain_ranks)
    except ValueError as error:
        raise BadInput(f"--laws: {error}") from None
    write_content(json.dumps(law_document(laws), indent=2).encode(), path)
    if not quiet:
        for text in (*(f"not monotone: {one}" for one in odd), *_lines(laws)):
            for line in wrapped(text, "  "):
                echo(line)


def _lines(laws: LawSet) -> Iterator[str]:
    """Yield what each law says."""
    for law in laws.domain:
        most = law.basis.ranks[-1]
        rate = law.bus_bytes_per_second(np.array([law.basis.most_bytes]), most)[0]
        yield (
            f"{law.operation} in a domain: {_rests_on(law.basis)}; start {law.start_seconds(most) * 1e6:.4g} us,"
            f" {rate / 1e9:.4g} GB/s bus bandwidth at {law.basis.most_bytes:,.0f} bytes; {_within(law.intervals)}"
        )
    for over in laws.hosts:
        start = over.whole_start_seconds(over.hosts[-1], over.basis.ranks[-1] / over.hosts[-1])
        yield (
            f"{over.operation} over hosts: {_rests_on(over.basis)}; start {start * 1e6:.4g} us,"
            f" {over.nic_bytes_per_second / 1e9:.4g} GB/s of a rank's network card; {_within(over.intervals)}"
        )


def _rests_on(basis: Basis) -> str:
    ranks = f"{basis.ranks[0]} to {basis.ranks[-1]}" if len(basis.ranks) > 1 else f"{basis.ranks[0]}"
    return f"{counted(basis.num_rows, 'row')} of {ranks} ranks"


def _within(intervals: Intervals) -> str:
    largest = intervals.sizes[-1]
    return f"90% of measurements of large messages lie within {largest.lower:.3g} to {largest.upper:.3g} of it"
