# SPDX-License-Identifier: Apache-2.0
"""A FAKE of a program that changes can be tried on (fake_trial.py). Run it with `python -I -S -X tonnage=off`: start (command.py)."""

import os
import sys

sys.dont_write_bytecode = True  # -I does not take it from the environment
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import fake_trial

fake_trial.main()
