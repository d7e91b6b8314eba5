"""What the index says of the tables that it reads, and that others own."""

import pytest
from sqlalchemy import TableClause

from backend.migrations.tables import metadata
from backend.search.sql.tables import READ_TABLES


@pytest.mark.parametrize("read", READ_TABLES, ids=lambda table: table.name)
def test_each_column_is_one_of_the_table(read: TableClause) -> None:
    columns = metadata.tables[read.name].c
    assert {one.name: type(one.type) for one in read.c} == {one.name: type(columns[one.name].type) for one in read.c}
