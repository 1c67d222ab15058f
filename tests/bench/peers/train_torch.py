# SPDX-License-Identifier: Apache-2.0
"""PyTorch in one process, eager or compiled, taking turns (turns.py): train_torch.py MODEL THREADS [--compile]"""
import sys

import torch

import models
import turns

work, threads = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(threads)
torch.manual_seed(7)
model = models.MODELS[work]()
if "--compile" in sys.argv:
    model = torch.compile(model)
given = models.WORKS[work]
turns.serve(models.stepper(model, work, given.batch), given.batch * given.units)
