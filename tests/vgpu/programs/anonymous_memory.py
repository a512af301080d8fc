# SPDX-License-Identifier: Apache-2.0
"""Says how much anonymous memory a process has that has imported torch."""

import torch  # noqa: F401

with open("/proc/self/status") as status:
    print("anonymous", next(1024 * int(line.split()[1]) for line in status if line.startswith("RssAnon:")))
