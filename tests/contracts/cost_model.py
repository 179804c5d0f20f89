"""What every cost model promises; each model's tests inherit this class."""

import dataclasses
from typing import Any, get_args

import numpy as np
import pytest

from cost_models.errors import MissingHardwareNumber, UnsupportedWork
from cost_models.hardware import Hardware
from cost_models.protocol import CostModel, Ledger, ShardWork
from cost_models.vocabulary import NUM_PHASES, Evidence, Kernel, Phase, Scheme
from tests.cost_models.builders import hardware, plain_hardware, shard_work, table_shard


class CostModelContract:
    """Inherit, and name the class of the model."""

    model: type[CostModel]

    def work(self) -> ShardWork:
        """One shard of every scheme on 2 hosts of 4 ranks."""
        pieces = [table_shard(scheme, num_ranks=8, ranks_per_host=4) for scheme in Scheme]
        columns: dict[str, Any] = {
            field.name: np.concatenate([getattr(piece, field.name) for piece in pieces])
            for field in dataclasses.fields(ShardWork)
            if isinstance(getattr(pieces[0], field.name), np.ndarray)
        }
        return dataclasses.replace(pieces[0], **columns)

    def test_it_has_a_name_and_a_version(self) -> None:
        assert self.model().name
        assert self.model().version

    def test_counted_phases_are_one_flag_per_phase(self) -> None:
        counted = self.model().counted_phases
        assert counted.dtype == np.bool_
        assert counted.shape == (NUM_PHASES,)

    def test_it_names_its_ledger(self) -> None:
        assert self.model().ledger in get_args(Ledger)

    def test_same_work_same_seconds(self) -> None:
        work, machine = self.work(), plain_hardware()
        first, second = self.model().predict(work, machine), self.model().predict(work, machine)
        np.testing.assert_array_equal(first.seconds, second.seconds)
        np.testing.assert_array_equal(first.evidence, second.evidence)

    def test_answers_have_one_row_per_shard_and_are_read_only(self) -> None:
        work = self.work()
        priced = self.model().predict(work, plain_hardware())
        assert priced.seconds.shape == priced.evidence.shape == (work.num_shards, NUM_PHASES)
        with pytest.raises(ValueError, match="read-only"):
            priced.seconds[0, 0] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            priced.evidence[0, 0] = 1

    def test_no_shards_cost_nothing(self) -> None:
        empty = shard_work(lookups=np.zeros(1))
        nothing = dataclasses.replace(
            empty,
            **{
                field.name: getattr(empty, field.name)[:0]
                for field in dataclasses.fields(ShardWork)
                if isinstance(getattr(empty, field.name), np.ndarray)
            },
        )
        assert self.model().predict(nothing, plain_hardware()).seconds.shape == (0, NUM_PHASES)

    def test_a_shard_costs_the_same_in_any_company(self) -> None:
        together = self.model().predict(self.work(), plain_hardware()).seconds
        alone = [
            self.model().predict(table_shard(scheme, num_ranks=8, ranks_per_host=4), plain_hardware()).seconds[0]
            for scheme in Scheme
        ]
        np.testing.assert_allclose(together, np.stack(alone), rtol=1e-12)

    @pytest.mark.parametrize("scheme", Scheme)
    def test_a_table_that_is_never_looked_up_costs_no_lookups(self, scheme: Scheme) -> None:
        idle = table_shard(scheme, pooling=0.0)
        busy = table_shard(scheme, pooling=10.0)
        machine = plain_hardware()
        idle_seconds = self.model().predict(idle, machine).seconds[0]
        busy_seconds = self.model().predict(busy, machine).seconds[0]
        assert idle_seconds[Phase.INPUT_COMM] == 0
        assert idle_seconds[Phase.FORWARD_COMPUTE] < busy_seconds[Phase.FORWARD_COMPUTE]
        assert idle_seconds[Phase.BACKWARD_COMPUTE] < busy_seconds[Phase.BACKWARD_COMPUTE]

    @pytest.mark.parametrize("scheme", Scheme)
    def test_more_lookups_never_cost_less(self, scheme: Scheme) -> None:
        machine = plain_hardware()
        # Messages are the cluster's, not the shard's: keep them fixed.
        messages = {"forward_message_bytes": 2.0**26, "backward_message_bytes": 2.0**26, "id_message_bytes": 2.0**20}
        steps = [
            self.model().predict(table_shard(scheme, pooling=p, **messages), machine).seconds[0]
            for p in (0.0, 0.1, 1.0, 3.0, 10.0, 200.0)
        ]
        assert np.all(np.diff(np.stack(steps), axis=0) >= 0)

    @pytest.mark.parametrize("kernel", [Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING, Kernel.KEY_VALUE])
    def test_kernels_without_a_formula_are_refused(self, kernel: Kernel) -> None:
        with pytest.raises(UnsupportedWork, match=kernel.label):
            self.model().predict(shard_work(kernel=kernel), plain_hardware())

    @pytest.mark.parametrize(
        ("lacking", "num_ranks", "ranks_per_host"),
        [
            ("hbm_bytes_per_second", 8, 8),
            ("intra_host_bytes_per_second", 8, 8),
            ("inter_host_bytes_per_second", 8, 4),
        ],
    )
    def test_a_number_that_is_needed_and_missing_raises(
        self, lacking: str, num_ranks: int, ranks_per_host: int
    ) -> None:
        machine = without(plain_hardware(), lacking)
        work = table_shard(Scheme.TABLE_ROW_WISE, num_ranks=num_ranks, ranks_per_host=ranks_per_host)
        with pytest.raises(MissingHardwareNumber, match=lacking) as raised:
            self.model().predict(work, machine)
        assert lacking in raised.value.hint

    def test_a_number_that_is_not_needed_may_be_missing(self) -> None:
        machine = without(plain_hardware(), "inter_host_bytes_per_second")
        assert self.model().predict(table_shard(Scheme.TABLE_WISE), machine).seconds.sum() > 0

    def test_tables_of_a_machine_without_accelerator_live_in_host_memory(self) -> None:
        machine = hardware(hbm_bytes=0, ddr_bytes_per_second=1e11, intra_host_bytes_per_second=1e10)
        seconds = self.model().predict(table_shard(Scheme.TABLE_WISE), machine).seconds[0]
        faster = self.model().predict(table_shard(Scheme.TABLE_WISE), plain_hardware()).seconds[0]
        assert seconds[Phase.FORWARD_COMPUTE] > faster[Phase.FORWARD_COMPUTE]

    def test_entries_of_zero_seconds_need_no_evidence(self) -> None:
        priced = self.model().predict(self.work(), plain_hardware(Evidence.ESTIMATED))
        assert np.all(priced.evidence[priced.seconds == 0] == Evidence.MEASURED)
        assert np.all(priced.evidence[priced.seconds > 0] == Evidence.ESTIMATED)


def without(machine: Hardware, name: str) -> Hardware:
    """Copy hardware without one number."""
    return dataclasses.replace(machine, numbers={k: v for k, v in machine.numbers.items() if k != name})
