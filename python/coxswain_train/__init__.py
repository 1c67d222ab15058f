# SPDX-License-Identifier: Apache-2.0
"""Exports models as programs: folders that Coxswain's worker trains without Python (docs/programs.md),
runs the jobs that train them, and puts the trained weights back."""

from coxswain_train.check import ExportError
from coxswain_train.job import JobFailed, Result, TrainingJob
from coxswain_train.keras_model import export_keras
from coxswain_train.program import export_jax
from coxswain_train.torch_model import export_torch
from coxswain_train.weights import load_jax, load_keras, load_torch, load_weights

__all__ = [
    "ExportError",
    "JobFailed",
    "Result",
    "TrainingJob",
    "export_jax",
    "export_keras",
    "export_torch",
    "load_jax",
    "load_keras",
    "load_torch",
    "load_weights",
]
