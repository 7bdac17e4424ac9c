"""The rows of evtx_script_blocks."""

import collections
import re

from evaluator.clocks import Clocks
from evaluator.events import number_of


def script_blocks(events, decode):
    # The texts of each part, each with the first event that has it. A part without a number of its script is alone.
    blocks = collections.defaultdict(lambda: collections.defaultdict(dict))
    events = [event for event in events if event.provider in ("Microsoft-Windows-PowerShell", "PowerShellCore") and event.id == 4104]
    claimed = Clocks(events).contested(events)
    for event in events:
        script, total, path = event.data.get("ScriptBlockId"), number_of(event.data.get("MessageTotal")), event.data.get("Path") or None
        own = (event.record, event.time) if script is None else None
        number = number_of(event.data.get("MessageNumber"))
        stray = None if number and total and number <= total else (event.data.get("MessageNumber"),)
        texts = blocks[event.computer, event.channel and event.channel.lower(), event.provider, event.user_sid, event.process_id, event.level, script, own, total, path, stray][number]
        texts.setdefault(event.data.get("ScriptBlockText"), []).append(event)
    first = lambda text: (*min((event.time, event.record) for event in text[1]), text[0] or "")
    for (computer, _, _, user_sid, process_id, level, script, _, total, path, stray), numbers in blocks.items():
        ordered = {number: sorted(texts.items(), key=first) for number, texts in numbers.items()}
        for version in range(max(map(len, ordered.values()))):
            parts = {number: texts[version] for number, texts in ordered.items() if version < len(texts)}
            records = [min(event.record for event in events) for _, events in parts.values()]
            is_contested = stray is not None or any(len(ordered[number]) > 1 for number in parts) or len(set(records)) < len(records)
            # PowerShell logs a part once.
            is_contested |= any(len(events) > 1 or id(event) in claimed for _, events in parts.values() for event in events)
            text = "".join(text for _, (text, _) in sorted(parts.items(), key=lambda part: part[0] or 0) if text is not None)
            found = [decode(encoded) for encoded in re.findall(r"[A-Za-z0-9+/]{24,}={0,2}", text)]
            yield {
                "time_created": min(event.time for _, events in parts.values() for event in events), "computer": computer, "user_sid": user_sid, "process_id": process_id,
                "script_block_id": script, "path": path, "is_suspicious": level == 3, "contested": is_contested,
                "parts": total, "missing_parts": None if total is None else total - (len(parts) if stray is None else 0), "text": text, "decoded": [one for one in found if one is not None],
            }  # fmt: skip
