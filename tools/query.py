"""Runs the SQL in the environment variable SQL, with the extension loaded, and prints the result. usage: query.py EXTENSION"""

import os
import sys

import duckdb


def main(extension):
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.load_extension(extension)
    try:
        for statement in connection.extract_statements(os.environ["SQL"]):
            result = connection.sql(statement.query)
            if result is not None:
                result.show(max_width=160, max_rows=60)
    except duckdb.Error as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main(sys.argv[1])
