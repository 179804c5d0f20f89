"""Tables that look like the 856 of Meta's public embedding data set of 2021.

Three classes of tables (tiny, medium, large) and the unused ones, each with quantile curves of
rows, pooling factor and access skew and with the rank correlation of rows and pooling factor
(a Gaussian copula). Widths are not in the data: ours have a mean of 95 columns.

References
----------
facebookresearch/dlrm_datasets (MIT), ``fbgemm_t856_bs65536``: rows and pooling factors as kept
by citz73/csharding (MIT) at 0e5d60f. The curves are the quantiles at 0, 1/8, ..., 1 of those
tables; the exponent is that of the Zipf law over all rows of a table whose lookups of one batch
touch as many distinct rows as were counted.
Mudigere et al., "Software-Hardware Co-design for Fast and Scalable Training of Deep Learning
Recommendation Models" (ISCA 2022): model A has 4 to 384 columns, 93 on average.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from benchmarks.inputs.draws import choices, normals, uniforms

DIMS = (16, 32, 64, 128, 256)
DIM_SHARES = (0.15, 0.20, 0.25, 0.25, 0.15)
UNUSED_ROWS = 100  # the least that the data set reports, for tables that no batch looks up
_SHARES = (36 / 856, 122 / 856, 96 / 856, 602 / 856)  # unused, tiny, medium, large
_QUANTILES = np.linspace(0.0, 1.0, 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curves:
    """Quantiles of one class at ``_QUANTILES``."""

    log10_rows: tuple[float, ...]
    log10_pooling: tuple[float, ...]
    zipf_alpha: tuple[float, ...]
    correlation: float  # of the normal scores of rows and pooling factor


_CLASSES = (
    _Curves(
        log10_rows=(2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.435, 3.0),
        log10_pooling=(-1.398, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.078, 2.02),
        zipf_alpha=(1.609, 1.828, 2.023, 2.118, 2.343, 2.513, 2.688, 2.924, 3.692),
        correlation=0.215,
    ),
    _Curves(
        log10_rows=(3.059, 3.508, 3.753, 4.04, 4.121, 4.635, 5.325, 5.777, 6.0),
        log10_pooling=(-1.634, 0.0, 0.393, 0.555, 0.999, 1.218, 1.375, 1.695, 1.976),
        zipf_alpha=(0.0, 1.239, 1.31, 1.388, 1.444, 1.577, 1.685, 1.9, 3.568),
        correlation=0.004,
    ),
    _Curves(
        log10_rows=(6.012, 6.561, 6.708, 6.778, 6.778, 6.778, 6.778, 6.821, 7.098),
        log10_pooling=(-3.084, -0.003, 0.336, 0.617, 0.939, 1.139, 1.339, 1.635, 2.286),
        zipf_alpha=(0.393, 0.995, 1.096, 1.125, 1.159, 1.224, 1.346, 1.837, 3.768),
        correlation=0.291,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaLikeTables:
    """Columns of numbers, one entry per table."""

    rows: NDArray[np.float64]  # (num_tables,), before any scaling
    dims: NDArray[np.int64]  # (num_tables,) columns
    pooling_factors: NDArray[np.float64]  # (num_tables,) ids per sample; 0 for unused tables
    zipf_alphas: NDArray[np.float64]  # (num_tables,)
    is_scalable: NDArray[np.bool_]  # (num_tables,) medium and large: growing the model grows these


def draw_tables(rng: np.random.Generator, num_tables: int) -> MetaLikeTables:
    """Draw ``num_tables`` tables."""
    kinds = choices(rng, num_tables, _SHARES)
    rows_score, pooling_noise = normals(rng, num_tables), normals(rng, num_tables)
    alpha_share = uniforms(rng, num_tables)
    dims = np.array(DIMS)[choices(rng, num_tables, DIM_SHARES)]
    rows, pooling, alphas = np.full(num_tables, float(UNUSED_ROWS)), np.zeros(num_tables), np.zeros(num_tables)
    standard = NormalDist()
    for kind, curves in enumerate(_CLASSES, start=1):
        members = kinds == kind
        score = rows_score[members]
        joint = curves.correlation * score + np.sqrt(1 - curves.correlation**2) * pooling_noise[members]
        rows[members] = 10 ** np.interp([standard.cdf(s) for s in score], _QUANTILES, curves.log10_rows)
        pooling[members] = 10 ** np.interp([standard.cdf(s) for s in joint], _QUANTILES, curves.log10_pooling)
        alphas[members] = np.interp(alpha_share[members], _QUANTILES, curves.zipf_alpha)
    return MetaLikeTables(
        rows=rows,
        dims=dims,
        pooling_factors=np.round(pooling, 4),
        zipf_alphas=np.round(alphas, 3),
        is_scalable=kinds >= 2,
    )
