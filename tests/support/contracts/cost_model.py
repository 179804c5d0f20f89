"""What every cost model promises; each model's tests inherit this class."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from cost_models.errors import MissingHardwareNumber, UnsupportedWork
from cost_models.hardware.hardware import Hardware
from cost_models.hardware.profile_fields import FIELDS
from cost_models.protocol import CostModel, ShardWork
from cost_models.vocabulary import IS_CACHED, NUM_PHASES, Evidence, Kernel, Phase, Scheme
from tests.support.cost_models.shard_work import hardware, plain_hardware, shard_work, table_shard, tiered_hardware


class CostModelContract:
    """Inherit, and name the class of the model and the kernels that it has no formula for."""

    model: type[CostModel]
    refused_kernels: tuple[Kernel, ...] = ()

    def machine(self, evidence: Evidence = Evidence.GIVEN) -> Hardware:
        """Hardware with every number that the model needs."""
        return plain_hardware(evidence)

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

    def test_same_work_same_seconds(self) -> None:
        work, machine = self.work(), self.machine()
        first, second = self.model().predict(work, machine), self.model().predict(work, machine)
        np.testing.assert_array_equal(first.seconds, second.seconds)
        np.testing.assert_array_equal(first.evidence, second.evidence)

    def test_answers_have_one_row_per_shard_and_are_read_only(self) -> None:
        work = self.work()
        priced = self.model().predict(work, self.machine())
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
        assert self.model().predict(nothing, self.machine()).seconds.shape == (0, NUM_PHASES)

    def test_a_shard_costs_the_same_in_any_company(self) -> None:
        together = self.model().predict(self.work(), self.machine()).seconds
        alone = [
            self.model().predict(table_shard(scheme, num_ranks=8, ranks_per_host=4), self.machine()).seconds[0]
            for scheme in Scheme
        ]
        np.testing.assert_allclose(together, np.stack(alone), rtol=1e-12)

    @pytest.mark.parametrize("scheme", Scheme)
    def test_a_table_that_is_never_looked_up_costs_no_lookups(self, scheme: Scheme) -> None:
        idle = table_shard(scheme, pooling=0.0)
        busy = table_shard(scheme, pooling=10.0)
        machine = self.machine()
        idle_seconds = self.model().predict(idle, machine).seconds[0]
        busy_seconds = self.model().predict(busy, machine).seconds[0]
        assert idle_seconds[Phase.INPUT_COMM] == 0
        assert idle_seconds[Phase.FORWARD_COMPUTE] < busy_seconds[Phase.FORWARD_COMPUTE]
        assert idle_seconds[Phase.BACKWARD_COMPUTE] < busy_seconds[Phase.BACKWARD_COMPUTE]

    @pytest.mark.parametrize("scheme", Scheme)
    def test_more_lookups_never_cost_less(self, scheme: Scheme) -> None:
        machine = self.machine()
        # Messages are the cluster's, not the shard's: keep them fixed.
        messages = {"forward_message_bytes": 2.0**26, "backward_message_bytes": 2.0**26, "id_message_bytes": 2.0**20}
        steps = [
            self.model().predict(table_shard(scheme, pooling=p, **messages), machine).seconds[0]
            for p in (0.0, 0.1, 1.0, 3.0, 10.0, 200.0)
        ]
        assert np.all(np.diff(np.stack(steps), axis=0) >= 0)

    @pytest.mark.parametrize(
        "kernel",
        [
            Kernel.FUSED_UVM,
            Kernel.FUSED_UVM_CACHING,
            Kernel.KEY_VALUE,
            Kernel.HASH,
            Kernel.HASH_HOST,
            Kernel.HASH_HYBRID,
            Kernel.HASH_CACHING,
        ],
    )
    def test_kernels_of_other_tiers_are_refused_or_cost_more_than_fused(self, kernel: Kernel) -> None:
        """Half of the rows cached, half of those of a step missed; other tiers and keys take longer than a table."""
        shares = {"cache_load_factor": 0.5, "missed_share": 0.5} if kernel.facts.is_cached else {}
        work = shard_work(kernel=kernel, **shares)
        if kernel in self.refused_kernels:
            with pytest.raises(UnsupportedWork, match=kernel.label):
                self.model().predict(work, self.machine())
            return
        seconds = self.model().predict(work, tiered_hardware()).seconds
        assert seconds.sum() > self.model().predict(shard_work(), tiered_hardware()).seconds.sum()

    @pytest.mark.parametrize(
        ("kernel", "cached", "lacking"),
        [
            (Kernel.FUSED_UVM, np.nan, "host_link_bytes_per_second"),
            (Kernel.FUSED_UVM_CACHING, 0.2, "host_link_bytes_per_second"),
            (Kernel.KEY_VALUE, 0.2, "ssd_"),
            (Kernel.HASH_HOST, np.nan, "host_link_bytes_per_second"),
            (Kernel.HASH_HYBRID, 0.2, "host_link_bytes_per_second"),
            (Kernel.HASH_CACHING, 0.2, "host_link_bytes_per_second"),
        ],
    )
    def test_rows_beyond_the_device_are_not_priced_without_rates(
        self, kernel: Kernel, cached: float, lacking: str
    ) -> None:
        if kernel in self.refused_kernels:
            return
        with pytest.raises(MissingHardwareNumber, match=lacking):
            self.model().predict(shard_work(kernel=kernel, cache_load_factor=cached), plain_hardware())

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
        machine = without(self.machine(), lacking)
        work = table_shard(Scheme.TABLE_ROW_WISE, num_ranks=num_ranks, ranks_per_host=ranks_per_host)
        with pytest.raises(MissingHardwareNumber, match=lacking) as raised:
            self.model().predict(work, machine)
        assert lacking in raised.value.hint

    def test_one_call_finds_every_missing_number(self) -> None:
        """The same numbers in the same order as one call for each: of an accelerator with all but one, or with one."""
        work, priced_kernels = self.work(), [kernel for kernel in Kernel if kernel not in self.refused_kernels]
        some = work.take(np.zeros(len(priced_kernels), dtype=np.int64))
        of_kernels = dataclasses.replace(
            some,
            kernel=np.array(priced_kernels, dtype=np.int8),
            cache_load_factor=np.where(IS_CACHED[priced_kernels], 0.5, np.nan),
        )
        known = tiered_hardware().numbers | self.machine().numbers
        names = [name for name in known if name != "hbm_bytes"]
        subsets = [[], *([name] for name in names), *([n for n in names if n != name] for name in names)]
        found = []
        for shards, present in itertools.product((work, of_kernels), subsets):
            machine = dataclasses.replace(
                self.machine(), numbers={name: known[name] for name in ("hbm_bytes", *present)}
            )
            expected = missing_one_by_one(self.model(), shards, machine)
            collecting, missing = machine.collecting_missing()
            self.model().predict(shards, collecting)
            assert {name: str(error) for name, error in missing.items()} == expected
            assert list(missing) == list(expected)
            found.append(len(missing))
        assert max(found) > 1

    def test_a_number_that_is_not_needed_may_be_missing(self) -> None:
        machine = without(self.machine(), "inter_host_bytes_per_second")
        assert self.model().predict(table_shard(Scheme.TABLE_WISE), machine).seconds.sum() > 0

    def test_tables_of_a_machine_without_accelerator_live_in_host_memory(self) -> None:
        machine = hardware(hbm_bytes=0, ddr_bytes_per_second=1e11, intra_host_bytes_per_second=1e10)
        seconds = self.model().predict(table_shard(Scheme.TABLE_WISE), machine).seconds[0]
        faster = self.model().predict(table_shard(Scheme.TABLE_WISE), self.machine()).seconds[0]
        assert seconds[Phase.FORWARD_COMPUTE] > faster[Phase.FORWARD_COMPUTE]

    def test_entries_of_zero_seconds_need_no_evidence(self) -> None:
        priced = self.model().predict(self.work(), self.machine(Evidence.ESTIMATED))
        assert np.all(priced.evidence[priced.seconds == 0] == Evidence.MEASURED)
        assert np.all(priced.evidence[priced.seconds > 0] == Evidence.ESTIMATED)


def missing_one_by_one(model: CostModel, work: ShardWork, machine: Hardware) -> dict[str, str]:
    """Price again and again, with one more number each time; return the message of each missing number."""
    messages: dict[str, str] = {}
    while True:
        try:
            model.predict(work, machine)
        except MissingHardwareNumber as error:
            messages[error.name] = str(error)
            machine = machine.with_overrides({error.name: 1.0}, {error.name: FIELDS[error.name].unit})
        else:
            return messages


def without(machine: Hardware, name: str) -> Hardware:
    """Copy hardware without one number."""
    return dataclasses.replace(machine, numbers={k: v for k, v in machine.numbers.items() if k != name})
