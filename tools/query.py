"""Runs SQL with the extension loaded, and prints the result. usage: query.py EXTENSION FILE

The SQL is that of the environment variable SQL or, without one, of the file.
"""

import os
import pathlib
import sys

import duckdb


def main(extension, file):
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.load_extension(extension)
    try:
        for statement in connection.extract_statements(os.environ.get("SQL") or pathlib.Path(file).read_text(encoding="utf-8")):
            result = connection.sql(statement.query)
            if result is not None:
                result.show(max_width=160, max_rows=60)
    except duckdb.Error as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main(*sys.argv[1:])
