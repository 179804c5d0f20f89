"""A page of very many plans."""

from dataclasses import asdict

import pytest
from sqlalchemy import insert

from api.store.database import Database
from api.store.sql import tables
from tests.support.contracts.store.values import digest_of, summary
from tests.support.service.live import Live
from tests.support.thorough import thorough


@thorough
def test_pages_of_a_hundred_thousand_plans(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("many")
    database = Database.of_file(folder / "shardplan.sqlite")
    many = [summary(number, name=f"name-{number % 1000}") for number in range(100_000)]
    with database.engines.writer.begin() as connection:
        plans = [
            {"tenant": "default", "digest": one.plan_digest, "document": b"x", "created_at": one.created_at}
            for one in many
        ]
        connection.execute(insert(tables.plans), plans)
        connection.execute(insert(tables.plan_summaries), [{"tenant": "default", **asdict(one)} for one in many])
    database.close()
    with Live.of(folder) as live:
        middle = f"&page_token={digest_of(50_000)}"
        for query in ("", middle, "&name=name-7", f"&name=name-7{middle}"):
            assert len(live.get(f"/v1/plans?page_size=50{query}").json()["plans"]) == 50, query
        page = live.get(f"/v1/plans?page_size=2&page_token={digest_of(50_000)}").json()
        assert [plan["plan_digest"] for plan in page["plans"]] == [digest_of(49_999), digest_of(49_998)]
