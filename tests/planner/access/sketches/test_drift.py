"""Drift: chance is not told, and what changed is."""

import numpy as np

from planner.access.sketches.drift import drift
from tests.support.planning.id_streams import in_batches, sketched, zipf

STREAM = zipf(1.0, 20_000, 400_000)


def test_two_halves_of_one_stream_have_not_drifted() -> None:
    for alpha in (0.0, 0.6, 1.0, 1.4):
        stream = zipf(alpha, 20_000, 400_000)
        found = drift(sketched(in_batches(stream[:200_000], 4_000)), sketched(in_batches(stream[200_000:], 4_000)))
        assert found.reasons == (), alpha


def test_another_skew_has_drifted() -> None:
    found = drift(sketched(in_batches(STREAM, 4_000)), sketched(in_batches(zipf(0.6, 20_000, 400_000), 4_000)))
    assert len(found.reasons) == 3
    assert found.access_distance is not None
    assert found.access_distance > 0.2
    assert found.distinct_rows_ratio is not None
    assert found.distinct_rows_ratio > 1.1


def test_a_short_last_batch_is_no_drift() -> None:
    found = drift(sketched(in_batches(STREAM, 4_000)), sketched(in_batches(STREAM[:350_000], 30_000)))
    assert found.reasons == ()


def test_a_table_that_is_not_looked_up_any_more() -> None:
    idle = sketched([np.zeros(0, dtype=np.int64)])
    assert drift(sketched([np.array([1])]), idle).reasons == ("was looked up and is never looked up now",)
    assert drift(idle, idle).reasons == ()
