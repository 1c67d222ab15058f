# SPDX-License-Identifier: Apache-2.0
"""Exports models as programs: folders that Coxswain's worker trains without Python (docs/programs.md),
runs the jobs that train them, and puts the trained weights back."""

from coxswain_train.error import ExportError
from coxswain_train.job import JobFailed, Result, TrainingJob
from coxswain_train.model import export, load
from coxswain_train.weights import load_weights

__all__ = ["ExportError", "JobFailed", "Result", "TrainingJob", "export", "load", "load_weights"]
