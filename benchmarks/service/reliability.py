"""Kills servers and workers at random while solves run, and counts what became of every solve that was acknowledged.

Usage: ``python benchmarks/service/reliability.py [--database sqlite|postgres] [--solves 500] [--kills 40] [--seed 0]
[--scenario kills|gone|outage]``

- ``kills``: kill -9 of a random process every few seconds until all solves are acknowledged, then until all have ended.
- ``gone``: a worker is killed for good in the middle of its solves; how long until others run them.
- ``outage``: PostgreSQL is stopped as by a crash for 30 s in the middle; plans that a server has in memory are fetched
  all the while.

Each spec differs, so that each solve must publish a plan of its own. At the end every plan is fetched and evaluated by
the service's verifier, and the counts come from the database. The exit code is 1 where anything was lost.
"""

import argparse
import collections
import random
import sys
import threading
import time
from dataclasses import dataclass, field

import httpx
from sqlalchemy import create_engine, text

from benchmarks.service.fleet import Fleet, fleet

_ENDED = ("succeeded", "failed", "cancelled")
_SOLVE_LIMIT_SECONDS = 2
_OUTAGE_SECONDS = 30.0


@dataclass(slots=True)
class Record:
    """What clients saw."""

    acknowledged: dict[int, str] = field(default_factory=dict)  # number of the spec: id of its solve
    num_unanswered: int = 0  # requests that had no answer, and were sent again
    num_refused: int = 0  # 503
    lock: threading.Lock = field(default_factory=threading.Lock)


def spec_of(number: int, *, limit_seconds: float = _SOLVE_LIMIT_SECONDS) -> dict[str, object]:
    """Return a small spec that is no other's."""
    tables = [
        {"name": f"t{index}", "num_embeddings": 1000 + 7 * number + index, "embedding_dim": 16, "pooling_factor": 2.0}
        for index in range(6)
    ]
    return {
        "name": f"solve-{number}",
        "model": {"batch_size_per_rank": 64, "tables": tables},
        "hardware": {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 4},
        "solver": {"partitioner": "greedy", "time_limit_seconds": limit_seconds},
    }


def submit_all(made: Fleet, numbers: list[int], record: Record, *, seed: int) -> None:
    """Send every spec until it is acknowledged, to any server."""
    draw = random.Random(seed)
    for number in numbers:
        while number not in record.acknowledged:
            try:
                answer = httpx.post(f"{draw.choice(made.urls)}/v1/solves", json=spec_of(number), timeout=30)
            except httpx.TransportError:
                with record.lock:
                    record.num_unanswered += 1
                time.sleep(0.1)
                continue
            if answer.status_code in (200, 202):
                with record.lock:
                    record.acknowledged[number] = answer.json()["id"]
            elif answer.status_code == 503:
                with record.lock:
                    record.num_refused += 1
                time.sleep(0.5)
            else:
                raise RuntimeError(f"{answer.status_code}: {answer.text}")


def states_of(url: str, ids: list[str]) -> "collections.Counter[str]":
    """Return how many solves are in which state."""
    with httpx.Client(base_url=url, timeout=60) as client:
        return collections.Counter(client.get(f"/v1/solves/{one}").json().get("state", "lost") for one in ids)


def wait_for_end(made: Fleet, ids: list[str], limit_seconds: float) -> "collections.Counter[str]":
    """Return the states once all have ended, or after the limit."""
    deadline = time.monotonic() + limit_seconds
    while True:
        try:
            states = states_of(made.urls[0], ids)
            if sum(states[state] for state in _ENDED) == len(ids) or time.monotonic() > deadline:
                return states
        except (httpx.TransportError, ValueError):
            if time.monotonic() > deadline:
                raise
        time.sleep(1)


def kill_some(made: Fleet, stop: threading.Event, *, num_kills: int, seed: int) -> int:
    """Kill a random process every few seconds and start it again; return how often."""
    draw = random.Random(seed)
    done = 0
    while done < num_kills and not stop.wait(draw.uniform(0.3, 6.0)):
        member = draw.choice(made.members)
        member.end()
        time.sleep(draw.uniform(0.0, 0.5))
        member.start()
        done += 1
    return done


def kills(made: Fleet, args: argparse.Namespace) -> bool:
    """Kill while solves are sent and run."""
    record, stop = Record(), threading.Event()
    half = args.solves // 2
    clients = [
        threading.Thread(target=submit_all, args=(made, numbers, record), kwargs={"seed": seed})
        for seed, numbers in enumerate((list(range(half)), list(range(half, args.solves))))
    ]
    done: list[int] = []
    killer = threading.Thread(
        target=lambda: done.append(kill_some(made, stop, num_kills=args.kills, seed=args.seed)), daemon=True
    )
    began = time.monotonic()
    for thread in (*clients, killer):
        thread.start()
    for thread in clients:
        thread.join()
    print(f"{len(record.acknowledged)} solves acknowledged after {time.monotonic() - began:.0f} s", flush=True)
    ids = list(record.acknowledged.values())
    # The killer goes on until it is done, or until there is nothing left that it could disturb.
    while killer.is_alive():
        killer.join(timeout=2)
        try:
            states = states_of(made.urls[0], ids[-50:])
            if sum(states[state] for state in _ENDED) == len(ids[-50:]) and not _unended(made):
                stop.set()
        except (httpx.TransportError, ValueError):
            continue
    made.wait_until_ready()
    states = wait_for_end(made, ids, 600)
    starts = {member.name: member.num_starts for member in made.members}
    print(f"{done[0]} kills (seed {args.seed}; starts {starts}); {record.num_unanswered} requests had no answer")
    return rated(made, ids, states, time.monotonic() - began, num_wanted=args.solves)


def gone(made: Fleet, args: argparse.Namespace) -> bool:
    """Take a worker away for good."""
    record = Record()
    made.wait_until_ready()
    submit_all(made, list(range(args.solves)), record, seed=args.seed)
    worker = next(member for member in made.members if member.port is None)
    ids = list(record.acknowledged.values())
    while not (mine := _running_on(made, worker.name)):
        time.sleep(0.05)
    worker.end()
    began = time.monotonic()
    made.members.remove(worker)
    while any(_attempts(made, one) == 1 and not _has_ended(made, one) for one in mine):
        time.sleep(0.1)
    print(f"{len(mine)} solves of the machine that is gone were begun again after {time.monotonic() - began:.1f} s")
    return rated(made, ids, wait_for_end(made, ids, 600), time.monotonic() - began, num_wanted=args.solves)


def outage(made: Fleet, args: argparse.Namespace) -> bool:
    """Stop the database in the middle."""
    assert made.postgres is not None
    record = Record()
    made.wait_until_ready()
    url = made.urls[0]
    first = httpx.post(f"{url}/v1/solves", json=spec_of(10**6), headers={"Prefer": "wait=60"}, timeout=90).json()
    plan_url = url + first["result"]["plan_url"]
    httpx.get(plan_url, timeout=30).raise_for_status()
    submit_all(made, list(range(args.solves)), record, seed=args.seed)
    made.postgres.stop()
    began, fetched, failed, refused = time.monotonic(), 0, 0, 0
    while time.monotonic() - began < _OUTAGE_SECONDS:
        try:
            answered = httpx.get(plan_url, timeout=5).status_code == 200
        except httpx.TransportError:
            answered = False
        fetched, failed = fetched + answered, failed + (not answered)
        try:
            answer = httpx.post(f"{url}/v1/solves", json=spec_of(2 * 10**6), timeout=5)
            refused += answer.status_code == 503
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    made.postgres.start()
    back = time.monotonic()
    print(
        f"while the database was away: {fetched} plans fetched, {failed} not; {refused} submissions answered with 503"
    )
    ids = [*record.acknowledged.values(), first["id"]]
    states = wait_for_end(made, ids, 300)
    print(f"all ended {time.monotonic() - back:.0f} s after it was back")
    is_well = rated(made, ids, states, time.monotonic() - began, num_wanted=args.solves + 1)
    return is_well and failed == 0 < min(fetched, refused)


def rated(made: Fleet, ids: list[str], states: "collections.Counter[str]", seconds: float, *, num_wanted: int) -> bool:
    """Print and judge what became of the solves, and whether as many as were wanted were acknowledged."""
    with httpx.Client(base_url=made.urls[0], timeout=60) as client:
        digests, num_valid = [], 0
        for one in ids:
            solve = client.get(f"/v1/solves/{one}").json()
            digest = (solve.get("result") or {}).get("plan_digest")
            if digest is None:
                why = solve.get("error") or solve.get("result")
                print(f"no plan: {solve.get('name')}, {solve.get('state')}, {why}")
                continue
            digests.append(digest)
            plan = client.get(solve["result"]["plan_url"]).json()
            number = int(str(solve["name"]).removeprefix("solve-"))
            body = {"spec": spec_of(number), "plan": plan}
            num_valid += client.post("/v1/plans:evaluate", json=body).json()["valid"]
    attempts = collections.Counter(_attempts(made, one) for one in ids)
    (num_plans,) = _row(made, "SELECT count(*) FROM plans")
    (num_solves,) = _row(made, "SELECT count(*) FROM solves")
    print(f"states after {seconds:.0f} s: {dict(states)}; attempts: {dict(sorted(attempts.items()))}")
    print(
        f"plans of these solves: {len(digests)}, all different: {len(set(digests)) == len(digests)}; valid: {num_valid}"
    )
    print(f"in the database: {num_solves} solves, {num_plans} plans; integrity: {_integrity(made)}")
    counts = {num_wanted, len(ids), states["succeeded"], len(set(digests)), num_valid, num_plans, num_solves}
    good = len(counts) == 1 and _integrity(made) == "ok"
    print("nothing lost" if good else "SOMETHING IS WRONG")
    return good


def _database(made: Fleet) -> str:
    if made.postgres is not None:
        return made.members[0].environment["SHARDPLAN_DATABASE_URL"].replace("postgresql:", "postgresql+psycopg:")
    return f"sqlite:///{made.folder / 'serve-0' / 'shardplan.sqlite'}"


def _row(made: Fleet, query: str, **values: object) -> tuple[object, ...]:
    engine = create_engine(_database(made))
    try:
        with engine.connect() as connection:
            row = connection.execute(text(query), values).first()
    finally:
        engine.dispose()
    assert row is not None
    return tuple(row)


def _attempts(made: Fleet, solve_id: str) -> int:
    return int(str(_row(made, "SELECT attempts FROM solves WHERE id = :id", id=solve_id)[0]))


def _has_ended(made: Fleet, solve_id: str) -> bool:
    return _row(made, "SELECT state FROM solves WHERE id = :id", id=solve_id)[0] in _ENDED


def _unended(made: Fleet) -> int:
    return int(str(_row(made, "SELECT count(*) FROM solves WHERE state IN ('queued', 'running')")[0]))


def _running_on(made: Fleet, member: str) -> list[str]:
    """Return the solves that run in a process, by the id in its data folder."""
    path = made.folder / member / "executor-id"
    if not path.exists():
        return []
    engine = create_engine(_database(made))
    query = text("SELECT id FROM solves WHERE state = 'running' AND executor_id = :id")
    try:
        with engine.connect() as connection:
            return [row[0] for row in connection.execute(query, {"id": path.read_text().strip()})]
    finally:
        engine.dispose()


def _integrity(made: Fleet) -> str:
    """Return what SQLite says of its file; PostgreSQL has no such question, its constraints were on all the time."""
    return str(_row(made, "PRAGMA integrity_check")[0]) if made.postgres is None else "ok"


def main(arguments: list[str] | None = None) -> int:
    """Run one scenario."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--scenario", choices=("kills", "gone", "outage"), default="kills")
    parser.add_argument("--solves", type=int, default=500)
    parser.add_argument("--kills", type=int, default=40, help="at most; fewer where the solves have ended before")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    on_postgres = args.database == "postgres" or args.scenario != "kills"
    scenario = {"kills": kills, "gone": gone, "outage": outage}[args.scenario]
    num_workers = 0 if not on_postgres else 2 if args.scenario == "gone" else 1
    with fleet(
        on_postgres=on_postgres,
        num_servers=2 if on_postgres and args.scenario == "kills" else 1,
        num_workers=num_workers,
        max_queued_solves=100_000,
    ) as made:
        made.wait_until_ready()
        return 0 if scenario(made, args) else 1


if __name__ == "__main__":
    sys.exit(main())
