"""Every scheme, in the order in which equal options are preferred."""

from planner.schemes.base import SchemeGeometry
from planner.schemes.column_wise import ColumnWise
from planner.schemes.data_parallel import DataParallel
from planner.schemes.grid_shard import GridShard
from planner.schemes.row_wise import RowWise
from planner.schemes.table_column_wise import TableColumnWise
from planner.schemes.table_row_wise import TableRowWise
from planner.schemes.table_wise import TableWise

SCHEMES: tuple[SchemeGeometry, ...] = (
    TableWise(),
    ColumnWise(),
    RowWise(),
    TableRowWise(),
    TableColumnWise(),
    GridShard(),
    DataParallel(),
)
