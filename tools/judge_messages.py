"""Writes the events of OTRF's Security-Datasets that have a message, for the test `judge` of `evtx-messages`.

usage: judge_messages.py REPOSITORY OUTPUT

REPOSITORY is a clone of github.com/OTRF/Security-Datasets, with or without a work tree. OUTPUT gets a line of JSON for each
event with `Message` and `SourceName`. Events of Sysmon are left out, because no public table has its texts.
Then run: EVTX_JUDGE=OUTPUT EVTX_MESSAGE_CATALOG=CATALOG cargo test -p evtx-messages --test all judge -- --nocapture
"""

import io
import json
import subprocess
import sys
import tarfile
import zipfile


def main(repository, output):
    written = 0
    with open(output, "w", encoding="utf-8") as out:
        for blob in archives(repository):
            try:
                for line in lines(git(repository, "cat-file", "blob", blob)):
                    event = parsed(line)
                    if event and event["SourceName"] != "Microsoft-Windows-Sysmon":
                        out.write(json.dumps(event) + "\n")
                        written += 1
            except (subprocess.CalledProcessError, zipfile.BadZipFile, tarfile.TarError, RuntimeError) as error:
                print(f"{blob}: {error}", file=sys.stderr)
    print(f"{written} events")


def git(repository, *arguments):
    return subprocess.run(["git", "-C", repository, *arguments], check=True, stdout=subprocess.PIPE).stdout


def archives(repository):
    """The blobs of the archives of datasets, each once."""
    found = {}
    for line in git(repository, "ls-tree", "-r", "HEAD", "datasets").decode().splitlines():
        fields, path = line.split("\t")
        if path.endswith((".zip", ".tar.gz")) and "pcap" not in path:
            found[fields.split()[2]] = path
    return found


def lines(archive):
    """The lines of the JSON files of an archive."""
    if archive[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            for name in files.namelist():
                if name.endswith(".json"):
                    yield from files.open(name)
    else:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            for member in files:
                if member.name.endswith(".json"):
                    yield from files.extractfile(member)


def parsed(line):
    """The event of a line, if it is one with a message."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "Message" in event and "SourceName" in event else None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
