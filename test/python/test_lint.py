"""What evtx_sigma_rules finds odd about rules: those that load, but can never match as they are written.

Judged by events: whatever an event has, a rule that asks for it has no lint. EVTX_CORPUS and the like name folders with real logs, and
EVTX_SIGMA one with rules, such as SigmaHQ's.
"""

import json
import os

import pytest
from judge import find_logs

SERVICES = {
    "Microsoft-Windows-Sysmon/Operational": "sysmon", "Security": "security", "System": "system", "Application": "application",
    "Microsoft-Windows-PowerShell/Operational": "powershell", "PowerShellCore/Operational": "powershell", "Windows PowerShell": "powershell-classic",
    "Microsoft-Windows-Bits-Client/Operational": "bits-client", "Microsoft-Windows-CodeIntegrity/Operational": "codeintegrity-operational",
    "Microsoft-Windows-DNS-Client/Operational": "dns-client", "Microsoft-Windows-NTLM/Operational": "ntlm",
    "Microsoft-Windows-TaskScheduler/Operational": "taskscheduler", "Microsoft-Windows-Windows Defender/Operational": "windefend",
}
CATEGORIES = {("sysmon", 1): "process_creation", ("security", 4688): "process_creation", ("sysmon", 3): "network_connection", ("sysmon", 11): "file_event",
              ("sysmon", 13): "registry_set", ("sysmon", 7): "image_load", ("sysmon", 10): "process_access", ("powershell", 4104): "ps_script",
              ("powershell", 4103): "ps_module"}


def rule(title, logsource, detection):
    return f"title: {json.dumps(title)}\nlogsource: {json.dumps(logsource)}\ndetection: {json.dumps(detection)}\n"


def lint(con, folder, *texts):
    """The lint of rules by their titles, of those that have some."""
    folder.mkdir(exist_ok=True)
    for number in range(0, len(texts), 200):
        (folder / f"{number}.yml").write_text("---\n".join(texts[number:number + 200]), encoding="utf-8")
    rows = con.execute("SELECT rule_title, lint, error FROM evtx_sigma_rules($1)", [str(folder)]).fetchall()
    assert len(rows) == len(texts)
    assert [row for row in rows if row[2]] == []
    return {title: found for title, found, _ in rows if found}


def test_what_an_event_has_is_never_odd(con, tmp_path):
    sql = """SELECT channel, event_id, any_value(event_data) FROM read_evtx($1)
             WHERE channel IS NOT NULL AND event_data IS NOT NULL AND error IS NULL GROUP BY channel, event_id, hash(map_keys(event_data)), hash(map_values(event_data)) % 20"""
    texts = []
    for log in find_logs():
        for channel, event_id, data in con.execute(sql, [str(log)]).fetchall():
            service = SERVICES.get(channel)
            if service is None:
                continue
            # A second value of a field has a name that only event_data has.
            data = {name: value for name, value in data.items() if not (name[-2:-1] == "_" and name[:-2] in data)}
            escaped = {name: value if value is None else value.replace("\\", "\\\\").replace("*", "\\*").replace("?", "\\?") for name, value in data.items()}
            items = {"EventID": event_id, **{name: value for name, value in escaped.items() if name != "EventID"}}
            sources = [{"product": "windows", "service": service}]
            if category := CATEGORIES.get((service, event_id)):
                sources.append({"product": "windows", "category": category})
            for source in sources:
                texts.append(rule(f"{log} {channel} {event_id} {len(texts)}", source, {"s": items, "condition": "s"}))
    assert len(texts) > 50
    assert lint(con, tmp_path / "rules", *texts) == {}


def test_rules_with_hits_are_never_odd(con, tmp_path):
    if not os.environ.get("EVTX_SIGMA"):
        pytest.skip("EVTX_SIGMA names no folder of rules")
    rules = os.environ["EVTX_SIGMA"] + "/**/*.yml"
    odd = {row[0] for row in con.execute("SELECT rule_file FROM evtx_sigma_rules($1) WHERE lint != [] AND error IS NULL", [rules]).fetchall()}
    hits = {row[0] for row in con.execute("SELECT DISTINCT rule_file FROM evtx_sigma($1, rules := $2) WHERE rule_file IS NOT NULL", [list(map(str, find_logs())), rules]).fetchall()}
    assert len(odd) > 0 and odd & hits == set()


@pytest.mark.parametrize("source, detection, expected", [
    ("process_creation", {"s": {"Commandline": "x"}}, ['the rule never matches: the event 1 has no field "Commandline"; use "CommandLine"']),
    ("process_creation", {"s": {"image": "x"}}, ['the rule never matches: the event 1 has no field "image"; use "Image"']),
    ("process_creation", {"s": {"Image": "x"}, "t": {"Commandline": "x"}, "condition": "s or t"}, ['an item never matches: the event 1 has no field "Commandline"; use "CommandLine"']),
    ("process_creation", {"s": {"Image": "x"}, "t": {"Commandline": "x"}, "condition": "s and not t"}, ['an item never matches: the event 1 has no field "Commandline"; use "CommandLine"']),
    ("process_creation", {"s": {"DestinationIp": "x", "Image": "y"}}, ['the rule never matches: the event 1 has no field "DestinationIp"']),
    ("process_creation", {"s": {"DestinationIp|neq": "x"}}, ['the rule never matches: the event 1 has no field "DestinationIp"']),
    ("process_creation", {"s": {"EventID": 4688, "OriginalFileName": "x"}}, ['the rule never matches: the event 4688 has no field "OriginalFileName"']),
    ("process_creation", {"s": {"EventID": 4624, "X": "x"}}, ["the rule never matches: no event of its log source has the event ID 4624"]),
    ("sysmon", {"s": {"EventID": 21, "Consumer": "x", "Image": "x"}}, ['the rule never matches: the event 21 has no field "Image"']),
    ("sysmon", {"s": {"EventID": [4688, 4624]}}, ["the rule never matches: no event of its log source has the event ID 4688, 4624"]),
    ("sysmon", {"s": {"CommandLine|contains": "x"}, "t": {"SourceIp": "y"}, "condition": "s and t"}, ['the rule never matches: the event 1 has no field "SourceIp"']),
    ("security", {"s": {"EventID": 70000}}, ['the rule never matches: "70000" is not an event ID, which is a number from 0 to 65535']),
    ("security", {"s": {"EventID": [-1, "abc"]}}, ['the rule never matches: "-1" is not an event ID, which is a number from 0 to 65535']),
    ("application", {"s": {"EventID": 70000, "X": 1}}, ['the rule never matches: "70000" is not an event ID, which is a number from 0 to 65535']),
    ("application", {"s": {"X": 1}, "t": {"EventID": "abc"}, "condition": "1 of them"}, ['an item never matches: "abc" is not an event ID, which is a number from 0 to 65535']),
    ("security", {"s": {"EventID": 4624, "Logontype": 3}}, ['the rule never matches: the event 4624 has no field "Logontype"; use "LogonType"']),
    ("security", {"s": {"EventId": 4624}, "t": {"EventID": 4625}, "condition": "s and t"}, ['the rule never matches: the event 4625 has no field "EventId"; use "EventID"']),
    ("security", {"s": {"EventID": 4624}, "t": {"EventID": 4625}, "condition": "s and t"}, ["the rule never matches: no event of its log source has all event IDs that it names"]),
    ("ps_script", {"s": {"EventID": 4103}}, ["the rule never matches: no event of its log source has the event ID 4103"]),
    ("ps_script", {"s": {"ScriptblockText|contains": "x"}}, ['the rule never matches: the event 4104 has no field "ScriptblockText"; use "ScriptBlockText"']),
    ("taskscheduler", {"s": {"EventID": 106, "taskname": "x"}}, ['the rule never matches: the event 106 has no field "taskname"; use "TaskName"']),
    # What is not known for certain.
    ("taskscheduler", {"s": {"EventID": 106, "New": "x"}}, []),
    ("process_creation", {"s": {"OriginalFileName": "x"}}, []),
    ("process_creation", {"s": {"IntegrityLevel": "High"}}, []),
    ("process_creation", {"s": {"MandatoryLabel": "S-1-16-12288"}}, []),
    ("process_creation", {"s": {"Commandline": None}}, []),
    ("process_creation", {"s": {"DestinationIp|exists": False, "EventID": 1}}, []),
    ("process_creation", {"s": {"Image": "x"}, "t": {"DestinationIp": "x"}, "condition": "s and not t"}, []),
    ("process_creation", {"s": {"Image": "x"}, "t": {"DestinationIp": "x"}, "condition": "s or t"}, []),
    ("process_creation", {"s": {"ProcessGuid|contains": "ABCDEF01-"}}, []),
    ("process_creation", {"s": ["keyword"]}, []),
    ("process_creation", {"s": {"Provider_Guid": "x", "Execution_ProcessID": 5, "Data": "x", "Computer": "c", "EventRecordID": 5, "Level": 4}}, []),
    ("process_creation", {"s": {"Image": "x", "RenderingInfo.Message": "x"}}, []),
    ("sysmon", {"s": {"EventID": 30, "New": "x"}}, []),
    ("sysmon", {"s": {"Hash": "x"}}, []),
    ("sysmon", {"s": {"EventID": "1*", "Nothing": "x"}}, []),
    ("sysmon", {"s": {"EventID|lt": 5, "Nothing": "x"}}, []),
    ("security", {"s": {"EventID": 33205, "statement": "x"}}, []),
    ("security", {"s": {"EventID": 1102, "LogFileClearedSubjectUserName": "x"}}, []),
    ("security", {"s": {"EventID": 4624, "Provider_Name": "Mine", "Nothing": "x"}}, []),
    ("security", {"s": {"Nothing": "x"}}, []),
    ("security", {"s": {"EventID": 4624, "LogonType": "Network"}}, []),
    ("system", {"s": {"EventID": 7045, "Servicename": "x"}}, []),
    ("application", {"s": {"EventID": 65535, "x": "y"}}, []),
])
def test_what_is_odd_about_rules(con, tmp_path, source, detection, expected):
    logsource = {"product": "windows", "category" if "_" in source else "service": source}
    text = rule("t", logsource, {"condition": "1 of them", **detection})
    assert lint(con, tmp_path / "rules", text).get("t", []) == expected


def test_log_sources_of_the_caller_count(con, tmp_path):
    (tmp_path / "a.yml").write_text(rule("t", {"category": "mine"}, {"s": {"Cmd": "x"}, "condition": "s"}))
    sources = tmp_path / "sources.txt"
    entry = "logsources:\n  - {category: mine, channels: [security], event_ids: [4688]"
    for rest, expected in [("}", ['the rule never matches: the event 4688 has no field "Cmd"']), (", renames: {Cmd: CommandLine}}", []), ("}\n  - {category: mine}", [])]:
        sources.write_text(entry + rest)
        assert con.execute("SELECT lint FROM evtx_sigma_rules($1, logsources := $2)", [str(tmp_path / "a.yml"), str(sources)]).fetchall() == [(expected,)]
