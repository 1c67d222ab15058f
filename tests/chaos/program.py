# SPDX-License-Identifier: Apache-2.0
"""What the rows of programs need (docs/programs.md): a worker with XLA=1, a PJRT plugin, and a model that Keras has exported, with
convolutions, batch normalisation and dropout. Its packages come from PyPI, once."""
import dataclasses
import glob
import os
import shutil
import subprocess

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
BATCH = 2  # of a call: arrangements.BATCH / 12 logical shards


class Missing(Exception):
    """Why what some rows need cannot be had here."""


@dataclasses.dataclass(frozen=True)
class Program:
    worker: str
    plugin: str
    folder: str


def run(what, command, log, **environment):
    """What it prints on standard output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **environment}, check=False)
    if done.returncode != 0:
        raise Missing(f"{what}: see {log.name}")
    return done.stdout.strip()


def prepare(build):
    """Makes them below `build`, the ordinary build."""
    build, folder = os.path.abspath(build), os.path.join(os.path.abspath(build), "chaos-program")
    worker = os.path.join(build, "xla", "coxswain-worker")
    lists = [os.path.join(ROOT, name) for name in ("python/requirements-test.txt", "tests/programs/requirements.txt")]
    with open(os.path.join(build, "chaos-program.log"), "w") as log:
        packages = run("their Python packages cannot be had", [os.path.join(ROOT, "scripts/python-environment"), *lists], log)
        run("the worker cannot be built with XLA=1", [os.path.join(ROOT, "tests/gpu/build"), build, "XLA=1", f"BUILD={build}/xla", worker], log)
        shutil.rmtree(folder, ignore_errors=True)
        run("the model cannot be exported", [f"{packages}/bin/python", os.path.join(ROOT, "tests/programs/export.py"), "keras", folder, str(BATCH)],
            log, PYTHONPATH=os.path.join(ROOT, "python"), JAX_PLATFORMS="cpu", KERAS_BACKEND="jax")
    plugin = glob.glob(f"{packages}/lib/python*/site-packages/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so")
    if not plugin:
        raise Missing("their packages have no PJRT plugin for CPUs")
    return Program(worker, plugin[0], folder)
