"""What monitors ask a card for: power limit, energy, fan, link, cores. Prints name and answer, or the error."""

import pynvml

pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
for name in ("EnforcedPowerLimit", "TotalEnergyConsumption", "FanSpeed", "CurrPcieLinkGeneration", "CurrPcieLinkWidth",
             "NumGpuCores"):  # fmt: skip
    try:
        print(name, getattr(pynvml, f"nvmlDeviceGet{name}")(handle))
    except pynvml.NVMLError as error:
        print(name, error)
