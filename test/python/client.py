"""Connections with the extension loaded, interrupts, and values as SQL. Usable without pytest."""

import contextlib
import os
import threading
import time

import duckdb


def connect(extension, **config):
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", **config})
    connection.load_extension(str(extension))
    return connection


@contextlib.contextmanager
def interrupting(connection, seconds):
    """Interrupts what the block runs once the process has spent some seconds of processor time on it: on a loaded machine, it has
    come just as far then. The value is a list, which gets the processor time at the interrupt, and the time."""
    end, at, done = time.process_time() + seconds, [], threading.Event()

    def watch():
        while (left := end - time.process_time()) > 0:
            # All processors together may spend the time that is left.
            if done.wait(max(left / (os.cpu_count() or 1), 0.001)):
                return
        at.extend([time.process_time(), time.perf_counter()])
        connection.interrupt()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield at
    finally:
        done.set()
        watcher.join()


def promised(seconds, limit):
    """Prints how long something took in the test that runs, and how long it may take, for bench/promises.py. Tests assert no time."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    print(f"promise: {test}: {seconds:.3f} s of {limit} s")


def quoted(value):
    return "'" + str(value).replace("'", "''") + "'"


def quoted_name(name):
    return '"' + name.replace('"', '""') + '"'


def list_of(values):
    return f"[{', '.join(map(quoted, values))}]"
