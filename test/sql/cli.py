"""DuckDB's command line with the extension loaded, for the SQL tests. usage: cli.py DUCKDB... EXTENSION

Reads and answers as client.py does.
"""

import json
import queue
import subprocess
import sys
import threading

COLUMN, ROW, END = "\x1f", "\x1e", "\x1d"
# A command that there is not makes an error, with which those of a statement end.
NO_COMMAND = "end_of_errors"


def follow(stream, chunks):
    while chunk := stream.read1():
        chunks.put(chunk)
    chunks.put(b"")


class Cli:
    def __init__(self, *duckdb, extension):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*duckdb, "-unsigned", "-batch", "-no-init"], stdin=pipe, stdout=pipe, stderr=pipe)
        self.output, self.errors = queue.Queue(), queue.Queue()
        for stream, chunks in (self.process.stdout, self.output), (self.process.stderr, self.errors):
            threading.Thread(target=follow, args=(stream, chunks), daemon=True).start()
        _, error = self.run(f"LOAD '{extension}';\n.mode list\n.headers on\n.nullvalue NULL\n.separator {COLUMN} {ROW}")
        if error:
            raise SystemExit(error)

    def run(self, sql):
        """The output of statements, and their errors."""
        self.process.stdin.write(f"{sql}\n.print {END}\n.{NO_COMMAND}\n".encode())
        self.process.stdin.flush()
        errors = read(self.errors, "Run '.help' for more information.")
        return read(self.output, END), errors.split("Unknown Command Error")[0]

    def answer(self, sql):
        text, error = self.run(sql if sql.rstrip().endswith(";") else f"{sql};")
        if error:
            return {"error": error}
        header, *rows = text.removesuffix(ROW).split(ROW)
        if not header:
            return {}
        return {"columns": len(header.split(COLUMN)), "rows": [[value or "(empty)" for value in row.split(COLUMN)] for row in rows]}


def read(chunks, end):
    """The text of chunks up to an end."""
    text = b""
    while end.encode() not in text:
        chunk = chunks.get(timeout=600)
        if not chunk:
            raise SystemExit(f"the command line has ended: {text}")
        text += chunk
    # The line break of the last end can come late.
    return text.decode().split(end)[0].lstrip("\r\n")


def main(*duckdb, extension):
    cli = Cli(*duckdb, extension=extension)
    for line in sys.stdin:
        print(json.dumps(cli.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:-1], extension=sys.argv[-1])
