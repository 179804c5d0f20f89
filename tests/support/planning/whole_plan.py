"""A plan of two tables on two ranks that has every part of a plan document; numbers are arbitrary."""

from dataclasses import replace

import numpy as np

from cost_models.vocabulary import Evidence, Kernel, Phase, Scheme, Tier
from planner.domain.plan.baseline import LEGAL, NO_PLAN, TABLE_WISE_BY_SIZE, TORCHREC_GREEDY, Baseline
from planner.domain.plan.goals import GoalResult, TradePoint
from planner.domain.plan.growth import GrowthStep, TableGrowth
from planner.domain.plan.index_dedup import IndexDedupLoad, IndexDedupSetting
from planner.domain.plan.kv_cache import KvCacheLoad, KvCacheSize
from planner.domain.plan.movement import Movement, RankPair
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.plan import (
    AnalyticPhase,
    Assumption,
    Evaluation,
    Fallback,
    GapParts,
    PhaseLoad,
    Plan,
    Prediction,
    RankLoad,
    ServingLoad,
    Surrogate,
    TierLoad,
)
from planner.domain.plan.replicas import GroupSize, ReplicaLoad
from planner.domain.plan.shards import Shards
from planner.domain.plan.stash import StashLoad
from planner.domain.plan.step_memory import MemoryPhase, StepMemory
from planner.domain.plan.whole_step import WholeStep
from planner.domain.problem.checkpoint import CheckpointLoad, CheckpointSize

RANKS = (0, 1)


def whole_plan() -> Plan:
    """Return the plan."""
    return Plan(
        placement=Placement(
            world_size=2,
            ranks_per_host=2,
            pod_size=2,
            kv_cache_bytes=1e8,
            use_index_dedup=True,
            tables=(_table("a"), _table("b")),
        ),
        evaluation=_evaluation(),
        lower_bound_seconds=0.9,
        relative_gap=0.1,
        reason="FEASIBLE",
        limit="time",
        detail="the search was cut",
        partitioner="greedy",
        solver_seconds=2.5,
        found_seconds=1.5,
        assumptions=(Assumption(subject="model.pipeline", value="none", evidence="default", source="the spec"),),
        versions={"shardplan": "0.1.0"},
        movement=_movement(),
        gap_parts=GapParts(
            balance_seconds=0.04,
            packing_seconds=0.05,
            choice_seconds=0.01,
            refuted_seconds=0.2,
            is_bound_final=False,
        ),
        late_gain_seconds=0.02,
        baselines=(
            Baseline(name=TORCHREC_GREEDY, state=LEGAL, objective_seconds=2.0, detail="the best of 20 proposals"),
            Baseline(name=TABLE_WISE_BY_SIZE, state=NO_PLAN, issue="rank 0 is too full"),
        ),
        kv_cache_sizes=(
            KvCacheSize(
                bytes=1e8,
                hit_rate=0.6,
                seconds_per_request=0.001,
                state="planned",
                objective_seconds=1.0,
                lower_bound_seconds=0.9,
            ),
        ),
        index_dedup_settings=(
            IndexDedupSetting(
                use_index_dedup=True, state="planned", objective_seconds=1.0, lower_bound_seconds=0.9, detail=""
            ),
        ),
        group_sizes=(
            GroupSize(
                sharding_group_size=2,
                num_groups=2,
                state="planned",
                objective_seconds=1.0,
                lower_bound_seconds=0.9,
                sync_seconds_per_step=0.02,
            ),
        ),
        goals=(
            GoalResult(
                name="fullest_rank",
                unit="share",
                value=0.5,
                value_before=0.75,
                value_at_turn=0.5,
                lower_bound=0.4,
                limits={"step_time": 1.1},
                points=(
                    TradePoint(
                        weights={"step_time": 1.0},
                        limits={"fullest_rank": 0.6},
                        values={"step_time": 1.05, "fullest_rank": 0.55},
                        least_sum=0.9,
                    ),
                ),
            ),
        ),
        surrogate=Surrogate(
            seconds=1.0, lower_bound_seconds=0.8, relative_gap=0.25, round=1, num_rounds=3, moved_shards=2
        ),
    )


def _table(name: str) -> TablePlacement:
    shards = Shards.of_columns(
        rank=RANKS, row_offset=(0, 10), num_rows=10, column_offset=0, num_columns=4, tier=Tier.DDR
    )
    return TablePlacement(
        name=name,
        sharding_type=Scheme.ROW_WISE,
        compute_kernel=Kernel.FUSED_UVM_CACHING,
        shards=shards,
        cache_load_factor=0.2,
        cache_reserved_bytes=0.25,
        stash_weights=True,
        module_path="sparse.ebc",
        data_type="fp32",
        pooling="sum",
        hash_table_mode="mpzch",
    )


def _evaluation() -> Evaluation:
    return Evaluation(
        objective="step_time",
        objective_seconds=1.0,
        step_time_seconds=1.0,
        max_rank_time_seconds=1.5,
        ranks=tuple(
            RankLoad(
                rank=rank,
                host=0,
                seconds=dict.fromkeys(Phase, 0.25),
                bytes={Tier.HBM: 100.4, Tier.DDR: 320.6},
                capacity_bytes={Tier.HBM: 1e9, Tier.DDR: 2e9},
                ledger_bytes={Tier.HBM: {"cache": 100.4}, Tier.DDR: {"weights": 320.6}},
                reserved_bytes={Tier.HBM: {"margin": 1e8}},
                torchrec_bytes={Tier.HBM: 90.4, Tier.DDR: 0.0},
                step_memory=StepMemory(
                    device_bytes=2e9,
                    peak_bytes=150.4,
                    peak_phase=MemoryPhase.DENSE_FORWARD,
                    persistent_bytes={"tables": 100.4},
                    buffer_bytes={MemoryPhase.DENSE_FORWARD: {"activations": 50.0}},
                    phase_bytes={MemoryPhase.DENSE_FORWARD: 150.4},
                ),
            )
            for rank in RANKS
        ),
        phases=(
            PhaseLoad(
                phase=Phase.FORWARD_COMPUTE,
                slowest_rank=1,
                seconds=0.5,
                mean_seconds=0.4,
                hidden_seconds=0.1,
                counted=True,
                evidence=Evidence.MEASURED,
                lower_seconds=0.45,
                upper_seconds=0.6,
            ),
        ),
        tiers=(
            TierLoad(
                tier=Tier.DDR,
                busiest_rank=1,
                read_bytes=10.2,
                written_bytes=20.7,
                operations=0.0,
                busy_seconds=0.1,
                utilization=0.2,
            ),
        ),
        shard_bytes=np.array([160.3, 160.3, 160.3, 160.3]),
        cost_model="test@1",
        hardware_numbers=frozenset({"hbm_bytes_per_second"}),
        checkpoint=_checkpoint(),
        serving=ServingLoad(
            samples_per_request=100,
            num_messages=4,
            busiest_rank=1,
            busy_seconds=0.01,
            requests_per_second=50.0,
            utilization=0.5,
            utilization_limit=0.8,
            sustained_requests_per_second=80.0,
            p99_limit_seconds=0.05,
            p50_seconds=0.0125,
            p99_seconds=0.04,
        ),
        whole_step=WholeStep(
            seconds=1.6,
            samples_per_second=1280.0,
            sparse_seconds=1.0,
            hidden_sparse_seconds=0.25,
            dense_forward_seconds=0.1,
            dense_backward_seconds=0.2,
            dense_all_reduce_seconds=0.3,
            hidden_all_reduce_seconds=0.1,
            overhead_seconds=0.1,
            stash_wait_seconds=0.0,
            evidence=Evidence.ESTIMATED,
        ),
        stash=StashLoad(
            num_tables=1,
            busiest_rank=1,
            stashed_bytes=50.0,
            all_ranks_bytes=80.0,
            host_bytes=100.0,
            to_host_seconds=0.01,
            to_device_seconds=0.02,
            forward_wait_seconds=0.0,
            backward_wait_seconds=0.0,
        ),
        replica_groups=ReplicaLoad(
            world_size=4,
            ranks_per_host=2,
            sharding_group_size=2,
            num_groups=2,
            node_group_size=1,
            use_inter_host_allreduce=False,
            sync_interval_steps=10,
            include_optimizer_state=True,
            bytes=100.4,
            seconds=0.2,
            seconds_per_step=0.02,
        ),
        kv_cache=KvCacheLoad(
            bytes=1e8, users=5000.0, hit_rate=0.6, recompute_seconds=0.0025, seconds_per_request=0.001
        ),
        growth=(
            TableGrowth(
                table="a",
                steps=(
                    GrowthStep(ids=20, slots_per_rank=128, device_bytes=50.4, host_bytes=0.0, peak_device_bytes=50.4),
                ),
                fits_ids=40,
            ),
        ),
        index_dedup=IndexDedupLoad(
            batch_ids=1000.0,
            unique_ids=400.0,
            unique_seconds=0.01,
            repeat_seconds=0.02,
            merge_seconds=0.03,
            objective_seconds_with=1.0,
            objective_seconds_without=1.2,
        ),
        prediction=Prediction(
            coverage=0.9,
            lower_seconds=0.9,
            upper_seconds=1.1,
            learned_share=0.8,
            measured_share=0.15,
            analytic_share=0.05,
            fallbacks=(Fallback(table="a", num_shards=2, reason="rows 10; measured: 100 to 1000"),),
            analytic_phases=(AnalyticPhase(phase=Phase.FORWARD_COMM, reason="all_to_all was not measured"),),
        ),
    )


def _checkpoint() -> CheckpointLoad:
    full = CheckpointSize(
        bytes=640.0,
        snapshot_seconds=0.1,
        slowest_rank=0,
        upload_seconds=5.0,
        slowest_host=0,
        mean_upload_seconds=5.0,
        bytes_by_rank=(320.0, 320.0),
        bytes_by_host=(640.0,),
    )
    return CheckpointLoad(
        policy="one_shot",
        full_every=12,
        interval_steps=1000,
        interval_seconds=1.0,  # less than the upload takes: there is a warning
        full=full,
        incremental=replace(full, bytes=64.0, bytes_by_rank=(32.0, 32.0), bytes_by_host=(64.0,)),
        mean_bytes=112.0,
        stored_bytes=704.0,
        full_fp32_bytes=1280.0,
        restore_seconds=2.0,
        lost_seconds_per_step=0.001,
        balanced=False,
        snapshot_evidence=Evidence.ESTIMATED,
    )


def _movement() -> Movement:
    return Movement(
        previous_digest="sha256:" + "0" * 64,
        moved_bytes=160.3,
        kept_bytes=320.6,
        new_bytes=160.3,
        pairs=(RankPair(source=0, target=1, bytes=160.3),),
        sent_bytes=(160.3, 0.0),
        received_bytes=(0.0, 160.3),
        seconds=0.01,
        link_evidence=Evidence.DATASHEET,
        previous_seconds=1.2,
        previous_issue="",
        saved_seconds_per_step=0.2,
        saved_lower_seconds=0.1,
        saved_upper_seconds=0.3,
        break_even_steps=1,
        charged_seconds=0.00001,
        remaining_steps=1000,
        max_moved_bytes=1e6,
    )
