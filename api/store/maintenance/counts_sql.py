"""Numbers of what is stored in a SQL database."""

from collections.abc import Mapping

from sqlalchemy import Column, Engine, func, select

from api.store.sql import tables


class SqlCounts:
    """Fulfils ``api.store.contract.store.CountStore`` over connections that read."""

    _readers: Engine

    def num_solves_by_state(self) -> Mapping[str, int]:
        """Return the numbers of solves."""
        return self._num_by(tables.solves.c.state)

    def num_models_by_state(self) -> Mapping[str, int]:
        """Return the numbers of versions of cost models."""
        return self._num_by(tables.cost_models.c.state)

    def _num_by(self, column: "Column[str]") -> Mapping[str, int]:
        with self._readers.begin() as connection:
            return {key: number for key, number in connection.execute(select(column, func.count()).group_by(column))}
