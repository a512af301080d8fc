# SPDX-License-Identifier: Apache-2.0
"""What monitors ask NVML for. Prints a line for each question."""

import pynvml
import torch

held = torch.zeros(1 << 28, device="cuda")
pynvml.nvmlInit()
card = pynvml.nvmlDeviceGetHandleByIndex(0)
QUESTIONS = """Name MemoryInfo UtilizationRates Temperature:0 PowerUsage UUID PciInfo CudaComputeCapability ComputeRunningProcesses
ClockInfo:0 EnforcedPowerLimit PersistenceMode Serial MaxClockInfo:0 FanSpeed MigMode TotalEnergyConsumption CurrPcieLinkGeneration
Architecture NvLinkState:0 NumGpuCores Brand""".split()
for question in QUESTIONS:
    name, *words = question.split(":")
    try:
        getattr(pynvml, "nvmlDeviceGet" + name)(card, *map(int, words))
        print(name, "answered")
    except pynvml.NVMLError as error:
        print(name, "-", error)
