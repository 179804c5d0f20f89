"""Fits all laws that measured rows of collectives of one machine support: what a spec states as its collective laws."""

from collections import Counter

import numpy as np

from cost_models.fitting.collective_laws import fit_domain_law, fit_hosts_law
from cost_models.fitting.collective_rows import CollectiveRows, collective_rows, falling_steps
from cost_models.hardware.laws.domain_law import OPERATIONS, DomainLaw
from cost_models.hardware.laws.hosts_law import HostsLaw
from cost_models.hardware.laws.law_set import LawSet
from cost_models.measurements.schema import Measurements

#: A start, a bend and a rate need so many sizes.
LEAST_SIZES = 4


def fit_law_set(rows: Measurements, *, name: str, domain_ranks: int | None = None) -> tuple[LawSet, tuple[str, ...]]:
    """Return the laws of the collectives of ``rows``, and what in the rows is odd but for their noise.

    ``domain_ranks`` ranks share fast links, by default those of a host. Groups up to that size are inside a domain.

    Raises
    ------
    ValueError
        There are no collectives, too few sizes of them, series that are no measurement of one collective, messages
        too small to show a bandwidth, or domains that are not whole hosts; the text has the number.
    """
    measured = collective_rows(rows)
    if not measured:
        raise ValueError("no measured collectives are among the rows")
    odd: list[str] = []
    domain: list[DomainLaw] = []
    hosts: list[HostsLaw] = []
    for operation in (one for one in OPERATIONS if one in measured):
        found = measured[operation]
        found = found.of(found.num_ranks > 1)
        shared = np.full(len(found.seconds), float(domain_ranks)) if domain_ranks else found.ranks_per_host
        if domain_ranks:
            _check_domain(found, domain_ranks)
        inside = found.num_ranks <= shared
        for part, is_inside in ((found.of(inside), True), (found.of(~inside), False)):
            if not len(part.seconds):
                continue
            _check_sizes(part, operation)
            odd += list(falling_steps(part, operation))
            library = Counter(part.library.tolist()).most_common(1)[0][0]
            source = f"{len(part.seconds)} rows of {library} that were given to shardplan fit"
            if is_inside:
                domain.append(fit_domain_law(part, operation, library=library, source=source))
            else:
                over = CollectiveRows(
                    message_bytes=part.message_bytes,
                    num_ranks=part.num_ranks,
                    ranks_per_host=np.minimum(shared[~inside], part.num_ranks),
                    seconds=part.seconds,
                    library=part.library,
                )
                hosts.append(fit_hosts_law(over, operation, library=library, source=source))
    if not domain and not hosts:
        raise ValueError("the collectives among the rows are of one rank each, which sends nothing")
    return LawSet(name=name, description="fitted by shardplan fit", domain=tuple(domain), hosts=tuple(hosts)), tuple(
        odd
    )


def _check_domain(rows: CollectiveRows, domain_ranks: int) -> None:
    """Refuse domains that end inside a host: nothing would say how many of them a group spans."""
    torn = (rows.num_ranks > domain_ranks) & (domain_ranks % rows.ranks_per_host != 0)
    if torn.any():
        per_host = rows.ranks_per_host[torn][0]
        raise ValueError(f"{domain_ranks} ranks of a domain are not whole hosts of {per_host:.0f} ranks each")


def _check_sizes(rows: CollectiveRows, operation: str) -> None:
    sizes = len(np.unique(rows.message_bytes))
    if sizes < LEAST_SIZES:
        raise ValueError(f"{operation}: {sizes} sizes of messages do not show start and bandwidth; {LEAST_SIZES} do")
