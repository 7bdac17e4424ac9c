"""A DuckDB client with the extension loaded, for the SQL tests. usage: client.py EXTENSION

Reads SQL as one JSON string per line, and answers with one line of JSON. Values are cast to VARCHAR by DuckDB. NULL and the empty string
are written as NULL and (empty).
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
    # What takes long would print a bar.
    connection.execute("SET enable_progress_bar = false")
    connection.load_extension(extension)
    for line in sys.stdin:
        try:
            result = answer(connection, json.loads(line))
        except duckdb.Error as error:
            result = {"error": str(error)}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
