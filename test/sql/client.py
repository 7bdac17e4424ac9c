"""A DuckDB client with the extension loaded, for the tests: takes a JSON string of SQL per line, answers with a line of JSON.

usage: client.py EXTENSION

Values are what DuckDB's own cast to VARCHAR gives; NULL and the empty string are written so.
"""

import json
import sys

import duckdb


def answer(connection, sql):
    relation = connection.sql(sql)
    if relation is None:
        return {}
    texts = ", ".join(f"#{i + 1}::VARCHAR" for i in range(len(relation.columns)))
    rows = relation.project(texts).fetchall()
    shown = {None: "NULL", "": "(empty)"}
    return {"columns": len(relation.columns), "rows": [[shown.get(value, value) for value in row] for row in rows]}


def main(extension):
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.load_extension(extension)
    for line in sys.stdin:
        try:
            result = answer(connection, json.loads(line))
        except duckdb.Error as error:
            result = {"error": str(error)}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
