"""Every scheme, in the order in which equal options are preferred."""

from planner.schemes.base import SchemeCuts
from planner.schemes.column_wise import ColumnWise
from planner.schemes.data_parallel import DataParallel
from planner.schemes.grid_shard import GridShard
from planner.schemes.row_wise import RowWise
from planner.schemes.table_column_wise import TableColumnWise
from planner.schemes.table_row_wise import TableRowWise
from planner.schemes.table_wise import TableWise

SCHEME_CUTS: tuple[SchemeCuts, ...] = (
    TableWise(),
    ColumnWise(),
    RowWise(),
    TableRowWise(),
    TableColumnWise(),
    GridShard(),
    DataParallel(),
)
