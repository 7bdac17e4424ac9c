"""Connections with the extension loaded, and values as SQL. Usable without pytest."""

import duckdb


def connect(extension, **config):
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", **config})
    connection.load_extension(str(extension))
    return connection


def quoted(value):
    return "'" + str(value).replace("'", "''") + "'"


def quoted_name(name):
    return '"' + name.replace('"', '""') + '"'


def list_of(values):
    return f"[{', '.join(map(quoted, values))}]"
