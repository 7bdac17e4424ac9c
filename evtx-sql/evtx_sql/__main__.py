"""`python -m evtx_sql` is the command `evtx-sql`."""

from ._command import main

main()
