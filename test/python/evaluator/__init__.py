"""A second evaluator of the macros in plain Python: from the JSON of evtx_dump (the evtx crate) to their rows.

Written from docs/macros.md. Of the extension, it uses neither the reader nor the SQL, only the names of codes, which have tests of their own.
"""
