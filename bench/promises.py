"""Prints how long things take that have a limit, with the limit. usage: promises.py [--rounds N] [--tell]

The times are those that tests print while they run. The tests assert how much work is done, but no time, as other programs may run beside
them. Of several rounds, the longest time counts. EVTX_EXTENSION, PYTHONPATH, EVTX_PORTABLE and EVTX_OLD are those of the tests, and
EVTX_CARGO_TEST is the command that tests all crates. With EVTX_WEB, the page is measured, too. Exits with 1 if something takes longer than
its limit, unless --tell is given, and if a test fails.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

# The tests that print times. Limits of 0.1 s are those of interrupts.
PYTHON = {
    "test/python/test_scan.py": [
        "test_a_query_can_be_interrupted",
        "test_making_a_catalog_of_messages_can_be_interrupted",
    ],
    "test/python/test_small_files.py": ["test_an_interrupt_ends_the_scan_of_a_folder"],
    "test/python/test_archives.py": ["test_an_interrupt_ends_decompression_soon"],
    "test/python/test_read_evtx_xml.py": ["test_a_query_on_a_large_export_can_be_interrupted"],
    "test/python/test_sigma.py": [
        "test_an_interrupt_ends_a_scan_soon",
        "test_an_interrupt_ends_the_loading_of_rules_soon",
        "test_many_rules_and_large_ones_end_soon",
    ],
    "test/python/test_sigma_of.py": ["test_an_interrupt_ends_it_soon", "test_columns_of_any_name_and_type"],
    "test/python/test_macros.py": ["test_decoding_base64_takes_little_and_can_be_interrupted", "test_100000_events_take_seconds"],
    "test/python/test_evtx_arrow_input.py": [
        "test_ctrl_c_ends_a_read",
        "test_an_interrupt_is_answered_at_once_and_handlers_of_signals_run",
    ],
    "test/python/test_evtx_arrow_sigma.py": ["test_ctrl_c_ends_a_read"],
    "test/python/test_damaged_logs.py": ["test_many_headers_are_no_reason_to_take_long"],
    "test/python/test_campaign.py": ["test_damage_costs_only_what_it_touches"],
    "test/python/test_files.py": ["test_a_path_of_too_many_folders_is_refused_soon"],
}
PORTABLE = {
    "test/portable/test_portable.py": [
        "test_an_interrupt_ends_work_without_rows",
        "test_an_interrupt_ends_the_end_of_a_copy",
        "test_ctrl_c_ends_a_query_of_the_command_line",
    ],
}
PAGE = {"test/web/test_page_bombs.py": ["test_the_page_answers"]}
# By the name of their program.
RUST = {
    "archives": [
        "limits::a_hundred_thousand_entries_are_listed_and_read",
        "sevens_hostile::a_list_of_entries_is_bounded",
        "sevens_hostile::a_million_entries_and_folders_are_listed",
        "campaign::damaged_lists_of_7z_archives_are_told",
        "campaign::damaged_headers_of_tar_archives_are_told",
    ],
    "multiplied": ["fixed_multiplied_files_stay_within_bounds"],
    "hostile": ["hostile_logs_are_survived"],
    "all": ["registry::circles_and_damage_end", "correlations::a_million_groups_take_bounded_time_and_memory"],
}


def commands():
    """The commands that print times."""
    for tests in [PYTHON, PORTABLE, *([PAGE] if os.environ.get("EVTX_WEB") else [])]:
        # Folders of tests have modules of the same name.
        yield [sys.executable, "-m", "pytest", "-q", "-s", *(f"{file}::{name}" for file, names in tests.items() for name in names)]
    for program, names in RUST.items():
        yield [*os.environ["EVTX_CARGO_TEST"].split(), "--test", program, "--", "--exact", "--include-ignored", "--show-output", "--test-threads=1", *names]


def main(arguments):
    times, limits, failed = {}, {}, False
    for _ in range(arguments.rounds):
        for command in commands():
            run = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False)
            found = re.findall(r"promise: (.*): ([\d.]+) s of ([\d.]+) s", run.stdout)
            if run.returncode or not found:
                print(run.stdout)
                failed = True
            for what, seconds, limit in found:
                times[what], limits[what] = max(times.get(what, 0), float(seconds)), float(limit)
    for what in sorted(times, key=lambda what: (limits[what], what)):
        print(f"{times[what]:8.3f} s of {limits[what]:4} s{' MISSED' * (times[what] > limits[what]):7}  {what}")
    missed = sum(times[what] > limits[what] for what in times)
    print(f"{len(times)} times, {missed} of them over their limit")
    return failed or (missed > 0 and not arguments.tell)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tell", action="store_true", help="exit with 0 if something takes longer than its limit")
    sys.exit(main(parser.parse_args()))
