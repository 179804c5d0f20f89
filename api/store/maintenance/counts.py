"""Numbers of what is stored, for metrics. Counting reads an index alone, never a document."""

from collections.abc import Mapping

from sqlalchemy import Column, func, select

from api.store.sql import tables
from api.store.sql.repository import Repository


class Counts(Repository):
    """Numbers of what all tenants have."""

    def num_solves_by_state(self) -> Mapping[str, int]:
        """Return the numbers of solves; states that no solve is in are left out."""
        return self._num_by(tables.solves.c.state)

    def num_models_by_state(self) -> Mapping[str, int]:
        """Return the numbers of versions of cost models; states that none is in are left out."""
        return self._num_by(tables.cost_models.c.state)

    def _num_by(self, column: "Column[str]") -> Mapping[str, int]:
        with self._readers.begin() as connection:
            return {key: number for key, number in connection.execute(select(column, func.count()).group_by(column))}
