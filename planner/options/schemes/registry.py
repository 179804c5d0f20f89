"""Every scheme, in the order in which equal options are preferred."""

from planner.options.schemes.base import SchemeGeometry
from planner.options.schemes.column_wise import ColumnWise
from planner.options.schemes.data_parallel import DataParallel
from planner.options.schemes.grid_shard import GridShard
from planner.options.schemes.row_wise import RowWise
from planner.options.schemes.table_column_wise import TableColumnWise
from planner.options.schemes.table_row_wise import TableRowWise
from planner.options.schemes.table_wise import TableWise

SCHEMES: tuple[SchemeGeometry, ...] = (
    TableWise(),
    ColumnWise(),
    RowWise(),
    TableRowWise(),
    TableColumnWise(),
    GridShard(),
    DataParallel(),
)
