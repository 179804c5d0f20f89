"""Check the certificate of a sharding plan: python check_certificate.py CERTIFICATE.json[.gz] [PLAN.json[.gz]]

Exit code 0 where the certificate proves what it claims (and is that of the plan), else 1; a sentence says why. Proven
is: under the prices, capacities and rules that the certificate states, its plan is legal and takes the seconds that it
claims, and no legal plan over the stated options takes less than its bound. Not proven: that hardware takes the stated
seconds, and that nothing but the stated options is legal. The bound is recomputed from prices of a relaxation
(Lagrange multipliers), which give a bound whatever they are: no number of the planner is believed. Sums of terms that
are not negative are rounded outward by ``SLACK`` to whole ticks; whole numbers are exact.
"""

import gzip
import hashlib
import json
import math
import re
import sys
from bisect import bisect_left
from itertools import chain, combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Document = dict[str, Any]

SLACK = 1e-12  # relative; far above what sums of doubles here can be off by
CLOSE = 1e-9  # relative: how far a stated objective may be from the one worked out here
OBJECTIVES = ("step_time", "max_rank_time", "request_latency")  # the first a sum of maxima, the others maxima of sums
DIGEST_KEYS = ("schema_version", "spec_digest", "world_size", "ranks_per_host", "tables")  # of a plan
SHARD = ("rank", "row_offset", "num_rows", "column_offset", "num_columns", "tier")
MOST_JOINED = 10  # kinds that tables join, of which all subsets are looked at
RANKS = re.compile(r"[0-9]{1,7}(-[0-9]{1,7})?(,[0-9]{1,7}(-[0-9]{1,7})?)*")  # of a group of shards, in order


def need(condition: object, why: str) -> None:
    """Reject unless a condition holds."""
    if not condition:
        raise ValueError(why)


def numbers(values: Any, *shape: int) -> Floats:
    """Return an array of numbers that are finite and not negative."""
    found = np.array(values, dtype=np.float64)
    need(found.shape == shape, f"expected numbers of shape {shape}, found {found.shape}")
    need(np.all(np.isfinite(found)) and np.all(found >= 0), "a number is negative or not finite")
    return found


def whole(value: Any, least: int = 0) -> int:
    """Return a whole number."""
    need(type(value) is int and value >= least, f"expected a whole number of {least} or more, found {value!r}")
    return int(value)


class Family(NamedTuple):
    """One way to shard a table."""

    table: int
    kind: int  # of those that a plan pays the starts of once; 0 where nothing is started
    scope: str
    fewest: int  # pieces
    most: int
    same_host: bool  # whether all pieces must lie on one host
    begin: int  # its first option
    widths: list[int]  # that fit somewhere, narrowest first: one option each


class Problem:
    """What a certificate states: ranks, tables, options with their prices, and rules; judges plans and proofs."""

    def __init__(self, stated: Document) -> None:
        self.stated = stated
        ranks, per_host = whole(stated["num_ranks"], 1), whole(stated["ranks_per_host"], 1)
        phases, tiers, every = len(stated["phases"]), len(stated["tiers"]), np.arange(ranks)
        need(ranks % per_host == 0 and stated["objective"] in OBJECTIVES, "unknown objective, or no whole hosts")
        self.is_step = stated["objective"] == OBJECTIVES[0]
        self.weight, self.window = numbers(stated["phase_weight"], phases), numbers(stated["window_seconds"], phases)
        self.beside_seconds = float(numbers(stated["beside_seconds"]))
        self.capacity = numbers(stated["capacity_bytes"], ranks, tiers) + 0.5  # sums of bytes are whole up to rounding
        self.slowdown = numbers(stated["slowdown"] or np.ones((ranks, phases)), ranks, phases)
        self.sites = {"rank": every[:, None], "host": every.reshape(-1, per_host), "world": every[None]}
        self.columns = [whole(table["columns"], 1) for table in stated["tables"]]
        allowed = [every if table["ranks"] is None else table["ranks"] for table in stated["tables"]]
        self.allowed = np.array([np.isin(every, some) for some in allowed])
        self.rules = [[[whole(family) for family in side] for side in rule] for rule in stated["rules"]]
        self.starts = numbers(stated["starts"] or np.zeros((1, phases)), max(len(stated["starts"]), 1), phases)
        self.families = self._families()
        self.check_dominators()

    def check_dominators(self) -> None:
        """Read which families are replaced by others, after checking that these replace them."""
        self.dominators = [item["dominated_by"] for item in self.stated["families"]]
        is_replaced = np.array([by is not None for by in self.dominators])
        better = np.array([whole(by) for by in self.dominators if by is not None], dtype=np.int64)
        worse = np.flatnonzero(is_replaced)
        need(np.all(better < len(is_replaced)), "a family is replaced by one that does not exist")
        for pair in np.flatnonzero(is_replaced[better] | ~self.replaces(better, worse))[:1]:
            table = self.families[worse[pair]].table
            need(False, f"family {better[pair]} does not replace another one of table {table}, as is stated")
        for kind, start in enumerate(self.starts):  # what replaces families of a kind starts nothing else
            pairs = [pair for pair in zip(self.families, self.dominators, strict=True) if pair[0].kind == kind]
            by = {kind if one is None else self.families[one].kind for family, one in pairs if family.widths}
            least = len(by) <= 1 and all(bool(np.all(self.starts[other] <= start)) for other in by)
            need(least, f"families of kind {kind} are replaced by others that start more")

    def replaces(self, better: Any, worse: Any) -> Any:
        """Whether plans are as legal and no worse with the better family of each pair, piece by piece."""
        alike, freer = (each[better] - each[worse] for each in (self.alike, self.freedom))
        found = np.all(alike == 0, axis=1) & np.all(freer >= 0, axis=1)
        count = np.diff(self.end)[worse[found]]  # of options of the worse families, which are looked at one by one
        mine = np.arange(count.sum()) + np.repeat(self.end[worse[found]] - np.cumsum(count) + count, count)
        wanted = np.repeat(better[found] - worse[found], count) * (len(self.width) + 1) + self.keys[mine]
        theirs = np.searchsorted(self.keys, wanted)
        theirs[theirs == len(self.keys)] = 0
        fine = self.keys[theirs] == wanted
        for costs in (self.seconds, self.full, self.last):
            fine &= np.all(costs[theirs] <= costs[mine], axis=1)
        found[np.repeat(np.flatnonzero(found), count)[~fine]] = False
        return found

    def _families(self) -> list[Family]:
        """Return all families with the widths that fit somewhere: options, of which those of a family are in a row."""
        blocks, items = self.stated["prices"], self.stated["families"]
        phases, tiers = len(self.weight), self.capacity.shape[1]
        widths = [[whole(width, 1) for width in block["widths"]] for block in blocks]
        need(all(one == sorted(set(one)) for one in widths), "a block of prices has widths that do not ascend")
        lengths = [*map(len, widths)]

        def read(of_blocks: list[Any], size: int) -> Floats:
            need([*map(len, of_blocks)] == lengths, "a block of prices has not one row for each width")
            return numbers([*chain.from_iterable(of_blocks)], sum(lengths), size)

        seconds = read([block["seconds"] for block in blocks], phases)
        full = read([block["bytes"] for block in blocks], tiers)
        last = read([block["bytes" if block["last_bytes"] is None else "last_bytes"] for block in blocks], tiers)
        rooms: dict[tuple[str, bytes], Floats] = {}  # of the roomiest site, its smallest rank
        room, ranks_of = np.zeros((len(items), tiers)), [allowed.tobytes() for allowed in self.allowed]
        for number, item in enumerate(items):
            key = item["scope"], ranks_of[whole(item["table"])]
            if key not in rooms:
                allowed, sites = self.allowed[item["table"]], self.sites[item["scope"]]
                rooms[key] = self.capacity[sites[allowed[sites].all(axis=1)]].min(axis=1).max(axis=0, initial=-1.0)
            room[number] = rooms[key]
        block_of = np.array([whole(item["prices"]) for item in items], dtype=np.int64)
        need(np.all(block_of < len(blocks)), "a family has prices that are not stated")
        counts = np.array(lengths, dtype=np.int64)[block_of]
        offsets = (np.cumsum(lengths, dtype=np.int64) - lengths)[block_of] - np.cumsum(counts) + counts
        row, of = np.repeat(offsets, counts) + np.arange(counts.sum()), np.repeat(np.arange(len(items)), counts)
        fits = np.all(np.minimum(full, last)[row] <= room[of], axis=1)
        row, self.end = row[fits], np.append(0, np.cumsum(np.bincount(of[fits], minlength=len(items))))
        self.width = np.array([*chain.from_iterable(widths)], dtype=np.int64)[row]
        self.seconds, self.full, self.last = (each[row] for each in (seconds, full, last))  # of options on a rank
        sides: list[set[tuple[int, int]]] = [set() for _ in items]
        for place, side in [((r, s), rule[s]) for r, rule in enumerate(self.rules) for s in (0, 1)]:
            for number in side:
                sides[number].add(place)
        ends, all_widths, found = self.end.tolist(), self.width.tolist(), []
        for number, item in enumerate(items):
            (low, high), table, kind = item["pieces"], item["table"], whole(item.get("kind", 0))
            need(kind < len(self.starts), f"family {number} is of a kind that does not exist")
            pieces = whole(low, 1), min(whole(high, 1), self.columns[table]), bool(item["same_host"])
            begin, of_widths = ends[number], all_widths[ends[number] : ends[number + 1]]
            found.append(Family(table, kind, item["scope"], *pieces, begin, of_widths))
        numbered: dict[Any, int] = {}
        every = [numbered.setdefault((f.scope, *sorted(s)), len(numbered)) for f, s in zip(found, sides, strict=True)]
        # Of families: table, and scope with sides of rules; pieces and hosts, so that more is freer.
        self.alike = np.array([[f.table for f in found], every], dtype=np.int64).T
        self.freedom = np.array([[-f.fewest, f.most, not f.same_host] for f in found], dtype=np.int64)
        # Options in order: by family, and there by width.
        self.keys = of[fits] * (len(row) + 1) + np.unique(self.width, return_inverse=True)[1].reshape(-1)
        return found

    def objective_of(self, plan: list[Document]) -> float:
        """Return the seconds of a plan, after checking that it breaks no stated rule."""
        need(len(plan) == len(self.columns), "the plan leaves a table out, or has one too many")
        seconds, sizes, touched = (np.zeros_like(each) for each in (self.slowdown, self.capacity, self.allowed))
        for table, placed in enumerate(plan):
            family, pieces = self.families[whole(placed["family"])], placed["pieces"]
            need(family.table == table, f"table {table} is cut by a family of another table")
            need(family.fewest <= len(pieces) <= family.most, f"table {table} has a wrong number of pieces")
            need(sum(whole(w, 1) for w, _ in pieces) == self.columns[table], f"table {table} lacks columns")
            for width, site in pieces:
                need(width in family.widths, f"table {table}: a piece of {width} columns is no option, or fits nowhere")
                need(whole(site) < len(self.sites[family.scope]), f"table {table} is on a site that does not exist")
                row, ranks = family.begin + family.widths.index(width), self.sites[family.scope][site]
                touched[table, ranks] = True
                seconds[ranks] += self.seconds[row]
                sizes[ranks] += self.full[row]
                sizes[ranks[-1]] -= self.full[row] - self.last[row]
            hosts = touched[table][self.sites["host"]].any(axis=1)
            need(not family.same_host or np.sum(hosts) == 1, f"table {table} must keep its pieces on one host")
        need(not np.any(touched & ~self.allowed), "a table is on a rank that it may not use")
        need(np.all(sizes <= self.capacity), "a rank holds more bytes than it has")
        same, apart = ([touched[group].sum(axis=0) for group in self.stated[key]] for key in ("same_rank", "apart"))
        need(all(np.count_nonzero(count) == 1 for count in same), "tables that must share one rank do not")
        need(all(np.all(count <= 1) for count in apart), "tables that must stay apart share a rank")
        need(all(plan[table]["pieces"] == at for table, at in self.stated["pinned"]), "a pinned table is elsewhere")
        used = {placed["family"] for placed in plan}
        need(all(used.isdisjoint(a) or used.isdisjoint(b) for a, b in self.rules), "both sides of a rule are used")
        kinds = sorted({self.families[family].kind for family in used})
        seconds = seconds * self.slowdown + self.starts[kinds].sum(axis=0)  # which every rank waits for
        exposed = np.maximum(seconds.max(axis=0) - self.window, 0.0)
        return float(self.weight @ exposed if self.is_step else np.max(seconds @ self.weight)) + self.beside_seconds

    def bound(self, proof: Document, known_seconds: float) -> float:
        """Return the least bound of all leaves of a tree of splits that leave no plan out, seconds."""
        self.tick, self.mix, slow = 2.0 ** (math.frexp(known_seconds)[1] - 60), np.eye(len(self.weight)), self.slowdown
        self.average = np.array([1 / math.fsum(1 / phase) for phase in slow.T])
        if not self.is_step:  # z >= sum over ranks of a[r] x load[r], for weights a that add up to 1
            shares = numbers(proof["rank_weights"], len(slow))
            self.average = np.min((shares / math.fsum(shares))[:, None] * slow, axis=0)
            self.mix, self.weight, self.window = self.weight[:, None], np.ones(1), np.zeros(1)
        self.start = self.starts @ self.mix * (1 - SLACK)
        self._list_choices()
        unused, least = dict(enumerate(proof["nodes"])), math.inf
        endless = np.full(len(self.weight), np.inf)
        todo: list[Any] = [(0, np.zeros(len(self.weight)), endless, np.full(len(self.table), True), ())]
        while todo:
            number, low, room, alive, kinds = todo.pop()
            alive = self._with_room(alive)
            if len(np.unique(self.table[alive])) < len(self.columns):
                continue  # a table has no choice left: no plan is here
            need(number in unused, f"node {number} of the proof is missing, or has two parents")
            node = unused.pop(number)
            if "prices" in node:
                least = min(least, self._leaf(node["prices"], low, room, alive, kinds))
                continue
            halves, paid = self._halves(node, low, room, alive), (kinds, kinds)
            if "kind" in node:  # the plan does not use it, or starts it
                need(whole(node["kind"]) not in kinds, f"node {number} of the proof starts a kind again")
                paid = (kinds, (*kinds, node["kind"]))
            todo += [(c, *half, k) for c, half, k in zip(node["children"], halves, paid, strict=True)]
        need(least < math.inf, "the proof leaves no plan at all")
        return max(least * self.tick * (1 - SLACK), 0.0) + self.beside_seconds

    def _list_choices(self) -> None:
        """List the choices, a family and a number of pieces each, and what options cost on one rank and on all."""
        sizes = np.diff(self.end)
        self.ranks = np.repeat([self.sites[family.scope].shape[1] for family in self.families], sizes)
        self.is_world = np.repeat([family.scope == "world" for family in self.families], sizes)
        self.table_of = np.repeat([family.table for family in self.families], sizes)
        self.total = self.full * (self.ranks[:, None] - 1) + self.last  # (options, tiers) bytes of the cluster
        self.one = self.seconds * self.slowdown.min(axis=0) @ self.mix  # (options, phases) on the fastest rank
        self.spread = self.seconds * (self.ranks[:, None] * self.average) @ self.mix  # on all ranks of a site
        choices: list[tuple[int, ...]] = []
        taken = [np.zeros((0, self.capacity.shape[1]))]
        for number, family in enumerate(self.families):
            columns, begin, widths = self.columns[family.table], family.begin, family.widths
            counts = range(family.fewest, family.most + 1 if widths and self.dominators[number] is None else 0)
            if fitting := [count for count in counts if count * widths[0] <= columns <= count * widths[-1]]:
                # The largest piece has the mean width at least.
                first = [begin + bisect_left(widths, -(-columns // count)) for count in fitting]
                choices += [(family.table, family.kind, number, *one) for one in zip(fitting, first, strict=True)]
                of_tiers = [map(math.floor, tier) for tier in self.total[begin : begin + len(widths)].T.tolist()]
                cuts = [least_of_cuts([*zip(widths, tier, strict=True)], fitting, columns) for tier in of_tiers]
                taken.append(np.array(cuts, dtype=float).T)
        self.table, self.kind, self.family, self.pieces, self.first = np.array(choices).reshape(-1, 5).T
        self.taken = np.concatenate(taken)  # (choices, tiers) bytes of the cluster at least
        # (choices, phases) seconds of the largest piece at least
        self.big = least_between(self.one * ~self.is_world[:, None], self.first, self.end[self.family + 1])

    def _with_room(self, alive: Any) -> Any:
        """Return the choices that leave the other tables their least bytes, until all do or a table has none."""
        room = np.array([math.fsum(tier) for tier in self.capacity.T])
        while len(np.unique(self.table[alive])) == len(self.columns):
            least = np.full((len(self.columns), len(room)), np.inf)
            np.minimum.at(least, self.table[alive], self.taken[alive])
            needed = (least.sum(axis=0) - least)[self.table] + self.taken
            fits = alive & np.all(needed * (1 - SLACK) <= room, axis=1)
            if np.array_equal(fits, alive):
                break
            alive = fits
        return alive

    def _halves(self, node: Document, low: Floats, room: Floats, alive: Any) -> list[tuple[Floats, Floats, Any]]:
        """Return two parts, in one of which any plan is: what some rank takes of a phase, and what any, and choices."""
        if "phase" in node:
            phase, raised, narrow = whole(node["phase"]), low.copy(), room.copy()
            if "room_seconds" in node:  # no rank takes more than some seconds, or one takes them
                narrow[phase] = min(room[phase], float(numbers(node["room_seconds"])))
                raised[phase] = max(low[phase], float(node["room_seconds"]) * (1 - SLACK))
                return [(low, narrow, alive & (self.big[:, phase] <= narrow[phase])), (raised, room, alive)]
            # No piece is above some seconds, or the slowest rank has the least such piece, or a longer one.
            above = alive & (self.big[:, phase] > float(numbers(node["at_seconds"])))
            raised[phase] = max(low[phase], self.big[above, phase].min(initial=np.inf) * (1 - SLACK))
            return [(low, room, alive & ~above), (raised, room, alive & above.any())]
        if "kind" in node:
            return [(low, room, alive & (self.kind != node["kind"])), (low, room, alive)]
        if "rule" in node:
            return [(low, room, alive & ~np.isin(self.family, side)) for side in self.rules[whole(node["rule"])]]
        family, (fewest, most) = whole(node["family"]), node["pieces"]
        chosen = (self.family == family) & (self.pieces >= fewest) & (self.pieces <= most)
        others = self.table != self.families[family].table
        return [(low, room, alive & ~chosen), (low, room, alive & (chosen | others))]

    def _leaf(self, prices: Document, low: Floats, room: Floats, alive: Any, kinds: tuple[int, ...]) -> float:
        """Return what the cheapest choices cost at the prices of a leaf, in ticks: no plan of them takes less.

        Plans pay the starts of ``kinds``, and those of any other kind that they use.
        """
        window = self.window - self.start[[*kinds]].sum(axis=0)
        # Of the average rank, of bytes of the cluster, and of tables' largest pieces on top of what all ranks carry.
        cluster_bytes = np.array([math.fsum(tier) for tier in self.capacity.T])
        average, memory = numbers(prices["average"], len(low)), numbers(prices["memory"], len(cluster_bytes))
        on_top = np.zeros((len(self.columns), len(low)))
        for table, phase, price in prices["largest"]:
            on_top[whole(table), whole(phase)] += float(numbers(price))
        floor = numbers(prices.get("floor", np.zeros_like(low)), len(low))  # of a piece of ``low``, on top, too
        everywhere = np.array([math.fsum(phase) for phase in on_top.T]) + floor
        charged = average + everywhere
        need(np.all(charged * (1 + SLACK) <= self.weight), "the prices of a phase add up to more than its weight")
        rows = [(whole(row[0]), *row[1:4], float(numbers(row[4]))) for row in prices.get("packing", [])]
        need(all(room[phase] <= at for phase, at, *_ in rows), "a row of packing has less room than its node")
        costs = self.spread @ average + self.one @ everywhere * self.is_world + self.total @ memory
        for phase, at, parts, smallest, price in rows:
            sizes = part_of_rank(self.one[:, phase] * (1 - SLACK), at, parts, smallest)
            costs += np.where(self.is_world, 0.0, price * self.ranks * (1 - SLACK) * sizes)
        above = np.sum(self.one * on_top[self.table_of], axis=1) * ~self.is_world
        largest = least_between(self._down(above), self.first, self.end[self.family + 1])
        slope = np.where(window > low, charged, self.weight)  # of what more starts cost, which is convex in them
        started = self._down(self.start @ slope).tolist()
        cheapest = self._cheapest_kinds(alive, self._down(costs), largest, kinds, started)
        known = np.concatenate([self._down(self.weight * np.maximum(low - window, 0.0)), self._down(floor * low)])
        of_rows = math.fsum(price for *_, price in rows) * len(self.slowdown)
        paid = np.concatenate([charged * np.maximum(window, low), memory * cluster_bytes, [of_rows]]) * (1 + 3 * SLACK)
        return cheapest + sum(map(int, chain(known.tolist(), self._down(-paid).tolist())))

    def _cheapest_kinds(
        self, alive: Any, costs: Floats, largest: Floats, paid: tuple[int, ...], started: list[float]
    ) -> int:
        """Return the least ticks of tables and of the starts of kinds that are not ``paid``, with any of these kinds.

        Kinds that tables join are a group, of which a plan uses some subset. Large groups start nothing here.
        """
        free: list[Any] = self.cheapest_of_tables(alive & np.isin(self.kind, paid), costs, largest)
        others, total = np.setdiff1d(self.kind[alive], paid).tolist(), 0
        of_kinds = [self.cheapest_of_tables(alive & (self.kind == kind), costs, largest) for kind in others]
        each = np.array([free, *of_kinds], dtype=float)
        joined = np.isfinite(each[1:])
        together = joined @ joined.T
        for _ in others:
            together = together @ together
        for group in np.unique(together, axis=0) if others else ():
            tables, mine = joined[group].any(axis=0), np.flatnonzero(group).tolist()
            found = [
                each[[0, *(kind + 1 for kind in some)]][:, tables].min(axis=0).sum()
                + math.fsum(started[others[kind]] for kind in some if len(mine) <= MOST_JOINED)
                for size in (range(len(mine) + 1) if len(mine) <= MOST_JOINED else [len(mine)])
                for some in combinations(mine, size)
            ]
            total += math.floor(min(found) * (1 - SLACK))
            free = [0 if is_of else ticks for is_of, ticks in zip(tables.tolist(), free, strict=True)]
        return int(total + sum(free))

    def cheapest_of_tables(self, alive: Any, costs: Floats, largest: Floats) -> list[int]:
        """Return what the cheapest choice of each table costs, where options and largest pieces take whole ticks.

        D columns cost D times the least per column at least: by that, doubles leave out most families.
        """
        need(np.all(np.isfinite(costs)) and np.all(np.isfinite(largest)), "an option costs more than can be counted")
        left = np.flatnonzero(alive)
        start = np.flatnonzero(np.diff(self.family[left], prepend=-1))  # of the choices of each family
        table, family = self.table[left[start]], self.family[left[start]]
        per_column = least_between(costs / self.width, self.end[family], self.end[family + 1])
        at_least = np.array(self.columns)[table] * per_column + np.minimum.reduceat(largest[left], start)
        cheapest: list[Any] = [math.inf] * len(self.columns)
        for number in np.lexsort((at_least, table)).tolist():
            of = self.families[family[number]]
            if at_least[number] * (1 - SLACK) - 1 <= cheapest[of.table]:
                mine = left[start[number] : start[number + 1] if number + 1 < len(start) else None]
                of_widths = map(int, costs[self.end[family[number]] :][: len(of.widths)].tolist())
                points = [*zip(of.widths, of_widths, strict=True)]
                of_cuts = least_of_cuts(points, self.pieces[mine].tolist(), self.columns[of.table])
                found = map(sum, zip(of_cuts, map(int, largest[mine].tolist()), strict=True))
                cheapest[of.table] = min(cheapest[of.table], *found)
        return cheapest

    def _down(self, seconds: Floats) -> Floats:
        """Return whole ticks, which doubles hold exactly."""
        return np.floor(seconds * (1 - SLACK) / self.tick)

    def shards_of(self, table: int, placed: Document) -> list[list[Any]]:
        """Return every shard of a table, with what ``SHARD`` name."""
        item, rows = self.stated["families"][placed["family"]], self.stated["tables"][table]["rows"]
        column, shards = 0, []
        for width, site in placed["pieces"]:
            ranks, hot = self.sites[item["scope"]][site].tolist(), item["hot_rows"]
            block = rows if item["replicated"] else -(-(rows - hot) // len(ranks))
            starts = zip(ranks, [0] * len(ranks) if item["replicated"] else range(hot, rows, block), strict=True)
            shards += [[rank, row, min(block, rows - row), column, width, item["tier"]] for rank, row in starts]
            shards += [[ranks[0], 0, hot, column, width, item["hot_tier"]]] if hot else []
            column += width
        return sorted(shards)


def least_between(values: Floats, first: Any, end: Any) -> Floats:
    """Return the least value from the first position of each range up to its end, along the first axis."""
    ranges = np.stack([first, end], axis=1).ravel()
    return np.asarray(np.minimum.reduceat(np.append(values, values[-1:], axis=0), ranges, axis=0)[::2])


def part_of_rank(seconds: Floats, room: float, parts: int, least: float) -> Floats:
    """Return sizes of pieces that add up to 1 at most if they take ``room`` seconds together at most.

    Parts: below (parts + 1) x seconds / room in whole numbers. Least pieces: m(s) of them fit into s seconds; one piece
    above half the room takes 1 - m(room - seconds) / m(room), others from the least one on 1 / m(room).
    """
    need(room > 0 and (whole(parts) > 0 or least > 0), "a row of packing has no room, parts or least piece")
    if parts:
        return np.asarray(np.maximum(np.ceil((parts + 1) * seconds / room) - 1, 0.0) / parts)
    fit = math.floor(room / least * (1 + SLACK))
    further = np.floor(np.maximum(room - seconds, 0.0) / least * (1 + SLACK))
    sizes = np.where(2 * seconds > room, 1 - np.minimum(further / max(fit, 1), 1.0), 1 / max(fit, 1))
    return np.where((seconds >= least) & (fit > 0), sizes, 0.0)


def least_of_cuts(points: list[tuple[int, int]], counts: list[int], columns: int) -> list[int]:
    """Return what so many pieces cost at least, for each count: as many of mean width on the lower convex hull."""
    hull: list[tuple[int, int]] = []
    for x, y in points:
        while len(hull) > 1 and (y - hull[-2][1]) * (hull[-1][0] - hull[-2][0]) <= (x - hull[-2][0]) * (
            hull[-1][1] - hull[-2][1]
        ):
            hull.pop()
        hull.append((x, y))
    ends = [bisect_left(hull, (-(-columns // count),)) for count in counts]
    parts = [(count, *hull[max(end - 1, 0)], *hull[end]) for count, end in zip(counts, ends, strict=True)]
    mixed = ((n, y, w * n - columns, z, columns - x * n) for n, x, y, w, z in parts)
    return [(y * a + z * b) * n // (a + b) if a else z * n for n, y, a, z, b in mixed]


def canonical(value: Any) -> bytes:
    """Return the canonical bytes of JSON, which digests are made of."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def shards_in(table: Document, num_ranks: int) -> list[Document]:
    """Return the shards of a table of a plan, one by one where the compact form has a group of them."""
    shards: list[Document] = []
    for listed in table["shards"]:
        if "ranks" not in listed:
            shards.append(listed)
            continue
        need(RANKS.fullmatch(listed["ranks"]), f"table {table['name']} has ranks that are no list like 0-1023,17")
        ends = [[*map(int, one.split("-"))] for one in listed["ranks"].split(",")]
        need(all(e[0] <= e[-1] < num_ranks for e in ends), f"table {table['name']} has ranks that its plan has not")
        ranks = [rank for e in ends for rank in range(e[0], e[-1] + 1)]
        shared = {key: listed[key] for key in listed if key not in ("ranks", "cut")}
        offset, size = {"rows": SHARD[1:3], "columns": SHARD[3:5], None: ("row_offset", None)}[listed["cut"]]
        first, step = whole(listed[offset]), 0 if size is None else whole(listed[size])
        shards += [{**shared, "rank": rank, offset: first + i * step} for i, rank in enumerate(ranks)]
    return shards


def plan_digest(plan: Document) -> str:
    """Return the digest of what determines training, table by table: a plan may have millions of shards."""
    keys = [*DIGEST_KEYS, *({"pod_size", "use_index_dedup", "replica_groups", "kv_cache_bytes"} & plan.keys())]
    before, after = canonical({**{key: plan.get(key) for key in keys}, "tables": []}).split(b'"tables":[]')
    hashed, num_ranks = hashlib.sha256(before + b'"tables":['), whole(plan["world_size"], 1)
    for number, table in enumerate(plan["tables"]):
        bare = [{key: shard[key] for key in shard if key != "bytes"} for shard in shards_in(table, num_ranks)]
        hashed.update(b"," * (number > 0) + canonical({**table, "shards": bare}))
    hashed.update(b"]" + after)
    return "sha256:" + hashed.hexdigest()


def check(certificate: Document, plan: Document | None = None) -> str:
    """Return what a certificate proves, as a sentence; raises ``ValueError`` where that is less than it claims."""
    content = canonical({key: value for key, value in certificate.items() if key != "certificate_digest"})
    actual = "sha256:" + hashlib.sha256(content).hexdigest()
    need(actual == certificate["certificate_digest"], "its content was changed: it has another digest")
    problem, claim = Problem(certificate["problem"]), certificate["claim"]
    seconds = problem.objective_of(certificate["plan"])
    bound = problem.bound(certificate["proof"], seconds)
    stated, proven, gap = (claim[key] for key in ("objective_seconds", "bound_seconds", "relative_gap"))
    need(abs(numbers(stated) - seconds) <= CLOSE * seconds, f"the plan takes {seconds} s, not {stated} s as claimed")
    need(numbers(proven) <= bound, f"a bound of {bound} s is proven, not {proven} s as claimed")
    least = seconds / proven - 1 - CLOSE if proven else math.inf
    need(gap is None or numbers(gap) >= least, f"a gap of {least} is proven, not {gap} as claimed")
    summary = f"the plan is legal and takes {seconds:.6g} s, within {math.inf if gap is None else gap:.4%} of the best"
    if plan is None:
        return summary
    actual = plan_digest(plan)
    need(actual == plan.get("plan_digest", actual) == certificate["plan_digest"], "the plan is not the certified one")
    need(plan.get("spec_digest") in (None, "", certificate["spec_digest"]), "the plan is for another spec")
    found = {key: (plan.get("objective") or {}).get(key) for key in claim["plan_objective"]}
    need(found == claim["plan_objective"], f"the plan states {found}, and {claim['plan_objective']} was certified")
    tables, facts = {table["name"]: table for table in plan["tables"]}, problem.stated
    of_group = plan.get("pod_size") or plan["ranks_per_host"]
    same = [plan["world_size"], of_group] == [facts["num_ranks"], facts["ranks_per_host"]]
    need(same and len(tables) == len(plan["tables"]) == len(facts["tables"]), "the plan has other ranks or tables")
    for number, placed in enumerate(certificate["plan"]):
        family, found = facts["families"][placed["family"]], tables[facts["tables"][number]["name"]]
        same = all(found.get(key) == family[key] for key in ("sharding_type", "compute_kernel", "cache_load_factor"))
        shards = sorted([one[key] for key in SHARD] for one in shards_in(found, facts["num_ranks"]))
        same &= shards == problem.shards_of(number, placed)
        need(same, f"table {found['name']} is sharded otherwise in the plan than in the certificate")
    return summary


def main(arguments: list[str]) -> int:
    """Check the files that are named on the command line."""
    try:
        contents = [Path(path).read_bytes() for path in arguments]
        print("ACCEPTED:", check(*(json.loads(gzip.decompress(c) if c[:2] == b"\x1f\x8b" else c) for c in contents)))
    except Exception as error:  # whatever cannot be read, or is not as it must be, proves nothing
        print("REJECTED:", error if isinstance(error, ValueError) else f"this is no such document: {error!r}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
