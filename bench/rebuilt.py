# SPDX-License-Identifier: Apache-2.0
"""Benches of rebuilt threads (rank_threads, user_threads): a table says what is right before anything is run."""

import csv
import sys
import tomllib


def measure(table, results, fields, judge):
    """Writes the row that judge() makes of each thread of the table, or of those named on the command line; the others keep theirs."""
    threads = tomllib.loads(table.read_text())["thread"]
    wanted = [word for word in sys.argv[1:] if not word.startswith("--")]
    kept = {row["name"]: row for row in csv.DictReader(results.open())} if results.exists() else {}
    for thread in threads:
        if not wanted or thread["name"] in wanted:
            kept[thread["name"]] = judge(thread)
            print(kept[thread["name"]], flush=True)
            with results.open("w", newline="") as file:
                writer = csv.DictWriter(file, fields, lineterminator="\n")
                writer.writeheader()
                writer.writerows(kept[each["name"]] for each in threads if each["name"] in kept)
