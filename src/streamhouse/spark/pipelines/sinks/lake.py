"""What the lake formats have in common: which rows they can keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema

from streamhouse.model.errors import InvalidConfig
from streamhouse.model.extras import install_hint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HINT = install_hint("lake")


def lake_schema(rows: DataFrame) -> pa.Schema:
    """Everything may be NULL: a column that no row has a NULL in today may have one tomorrow."""
    doubles = {name for name in rows.columns if rows.columns.count(name) > 1}
    if doubles:
        raise InvalidConfig(f"two columns have the name {sorted(doubles)[0]!r}", hint="give each a name with AS")
    try:
        schema = to_arrow_schema(rows.schema, timezone="UTC")
    except PySparkException as error:
        raise InvalidConfig(f"a column's type has no place in a lake table: {error}") from error
    for field in schema:
        if pa.types.is_null(field.type):
            raise InvalidConfig(f"column {field.name!r} has no type", hint="CAST it to one")
    return pa.schema([field.with_nullable(True) for field in schema])
