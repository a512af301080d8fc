# SPDX-License-Identifier: Apache-2.0
"""chemprop: `chemprop train` on a table of made molecules, for a regression."""

import os
import random

choose = random.Random(0)
with open("molecules.csv", "w") as file:
    file.write("smiles,value\n")
    for _ in range(600):
        chain = "".join(choose.choices(["C", "CC", "O", "N", "C(C)", "c1ccccc1"], k=6))
        file.write(f"C{chain}C,{choose.random():.3f}\n")
os.execvp("chemprop", ["chemprop", "train", "-i", "molecules.csv", "--task-type", "regression", "--epochs", "3", "--accelerator",
                       "gpu", "--devices", "1", "--message-hidden-dim", "1024", "--batch-size", "256", "-o", "out"])  # fmt: skip
