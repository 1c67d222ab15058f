# SPDX-License-Identifier: Apache-2.0
"""The error of everything that concerns a model."""


class ExportError(ValueError):
    """The model cannot be exported, or the weights are not its own. The message says why, and what to change."""
