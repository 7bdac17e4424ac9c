"""Compares a log, read by the extension, with what Windows' Event Viewer exported of it.

usage: judge_export.py EXTENSION LOG XML [MESSAGES]

XML is the log saved as "XML (XML File)", with display information for messages. MESSAGES is a catalog. Prints how many events have the same
XML, and how many messages are equal; the first differences follow. Three such pairs are in `test/fixtures` of github.com/NickSmet/ts-evtx.
"""

import collections
import os
import sys
import xml.etree.ElementTree as ET

import duckdb

NAMESPACE = "{http://schemas.microsoft.com/win/2004/08/events/event}"


def main(extension, log, export, messages=None):
    of_windows = {}
    for event in ET.parse(export).getroot():
        rendered = event.find(f"{NAMESPACE}RenderingInfo")
        message = None if rendered is None else rendered.findtext(f"{NAMESPACE}Message")
        if rendered is not None:
            event.remove(rendered)
        of_windows[event.findtext(f"{NAMESPACE}System/{NAMESPACE}EventRecordID")] = canonical(event), message
    con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    con.load_extension(extension)
    sql = "SELECT event_record_id::VARCHAR, provider, event_id, xml, message FROM read_evtx($log, xml := true, messages := $messages)"
    counts, differences = collections.Counter(), {}
    for record, provider, event, xml, message in con.execute(sql, {"log": log, "messages": messages}).fetchall():
        theirs, text = of_windows.pop(record, (None, None))
        ours = canonical(ET.fromstring(xml.encode()))
        counts["XML: equal" if ours == theirs else "XML: differs"] += 1
        if text is None:
            continue
        result = "no text" if message is None else "equal" if message == text else "differs"
        counts[f"message: {result}"] += 1
        if result == "differs":
            differences.setdefault((provider, event), (message, text))
    counts["not read"] = len(of_windows)
    print(dict(counts))
    for kind, (ours, theirs) in list(differences.items())[:20]:
        start = max(0, len(os.path.commonprefix([ours, theirs])) - 40)
        print(f"{kind}\n  ours   {ours[start:][:120]!r}\n  theirs {theirs[start:][:120]!r}")


def canonical(event):
    return ET.canonicalize(ET.tostring(event, encoding="unicode"))


if __name__ == "__main__":
    main(*sys.argv[1:])
