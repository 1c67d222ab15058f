# SPDX-License-Identifier: Apache-2.0
"""Units per second of PyTorch in one process, eager or compiled.

    train_torch.py MODEL THREADS SECONDS [--compile]     prints the rate
"""
import sys

import torch

import models

work, threads, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
torch.set_num_threads(threads)
torch.manual_seed(7)
model = models.WORKS[work][0]()
if "--compile" in sys.argv:
    model = torch.compile(model)
print(f"{models.units_per_second(model, work, models.WORKS[work][3], seconds):.0f}")
