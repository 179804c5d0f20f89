"""What a file says about the tables of a model and about the job that runs them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from api.specs.input.json import RejectedDocument
from planner.errors import Issue

Table = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Tables of a model, and what else their file says.

    A table is an object of ``model.tables`` of a spec. It has ``feature_names`` if its file names features without
    their ids per sample; such a table, and one without ``features`` and ``pooling_factor``, needs a number.
    """

    form: str  # of the file, for people
    tables: tuple[Table, ...]
    world_size: int | None = None  # ranks of the job
    ranks_per_host: int | None = None
    batch_size_per_rank: int | None = None  # samples
    warnings: tuple[Issue, ...] = ()

    @property
    def features_without_ids(self) -> tuple[str, ...]:
        """Features, and tables of one feature, for which the file has no ids per sample."""
        return tuple(name for table in self.tables for name in _features_without_ids(table))

    def spec_tables(self, pooling_factors: Mapping[str, float], default: float | None) -> list[Table]:
        """Return the tables as a spec has them.

        Parameters
        ----------
        pooling_factors
            Mean ids per sample, by feature or by table, of features for which the file has none.
        default
            Mean ids per sample of all other features without a number.

        Raises
        ------
        RejectedDocument
            A feature has no number, or a number has no feature.
        """
        missing = {name for name in self.features_without_ids if name not in pooling_factors}
        known = {*self.features_without_ids, *(str(table["name"]) for table in self.tables)}
        issues = [_unknown(name) for name in pooling_factors if name not in known]
        tables = []
        for index, table in enumerate(self.tables):
            own = pooling_factors.get(str(table["name"]), default)
            lacks = [name for name in _features_without_ids(table) if name in missing]
            if own is None:
                issues += [_without_ids(index, name) for name in lacks]
            tables.append(_with_features(table, pooling_factors, own))
        if issues:
            raise RejectedDocument(issues)
        return tables


def _features_without_ids(table: Table) -> Sequence[str]:
    if "features" in table or "pooling_factor" in table:
        return ()
    names = table.get("feature_names")
    return [str(name) for name in names] if isinstance(names, list) and names else [str(table["name"])]


def _with_features(table: Table, pooling_factors: Mapping[str, float], default: float | None) -> Table:
    missing = _features_without_ids(table)
    rest = {key: value for key, value in table.items() if key != "feature_names"}
    if not missing:
        return rest
    return {
        **rest,
        "features": [{"name": name, "pooling_factor": pooling_factors.get(name, default)} for name in missing],
    }


def _without_ids(index: int, name: str) -> Issue:
    return Issue(
        code="missing-field",
        pointer=f"/model/tables/{index}",
        message=f'feature "{name}" has no pooling factor, the mean ids of one sample',
        hint="no other number decides as much: state it in the file, or give it for this feature or for all",
    )


def _unknown(name: str) -> Issue:
    message = f'no table, and no feature without a pooling factor, is named "{name}"'
    return Issue(code="unknown-name", pointer="", message=message, hint="name one that the file has")
