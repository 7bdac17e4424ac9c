"""Stories: what happened in a small network, the events that Windows writes of it, and what the macros must say about it.

A story is a list of facts. Each fact says both: which events it leaves, and what an analyst should read. Nothing here shares code with the SQL. The
fields and values of the events are those of real logs and of Microsoft's pages about the events.
"""
