#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens libraries of a CUDA toolkit as a worker does, which needs no GPU, and looks for what it asks them for.

    tests/gpu/open_libraries.py TOOLKIT lib/libcublas.so.13 …
"""
import ctypes
import os
import re
import sys

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../worker/device/cuda")
# Library -> the list of functions that worker/device/cuda/ finds in it
LISTS = {"libcublas": "CUBLAS_FUNCTIONS", "libcublasLt": "CUBLASLT_FUNCTIONS", "libnccl": "NCCL_FUNCTIONS", "libcudnn": "CUDNN_FUNCTIONS"}
HEADERS = {"libcublas": "cublas.h", "libcublasLt": "cublas.h", "libnccl": "nccl.h", "libcudnn": "cudnn.h"}
# The image does not carry it; named by hand it is looked at, too
OPTIONAL = {"libcudnn"}


def functions_of(library):
    """By the macro that names them, one X(…) each."""
    text = open(os.path.join(HERE, HEADERS[library]), encoding="utf-8").read().replace("\\\n", " ")
    listed = re.search(rf"#define {LISTS[library]}\(X\)(.*)", text)[1]
    return re.findall(r"X\((\w+)\)", listed)


def main():
    toolkit, paths = sys.argv[1], sys.argv[2:]
    wanted = set(LISTS) - OPTIONAL
    for path in paths:
        handle = ctypes.CDLL(os.path.join(toolkit, path))
        name = os.path.basename(path).split(".")[0]
        if name not in LISTS:
            continue
        wanted.discard(name)
        functions = functions_of(name)
        assert functions, f"{name}: no functions are listed"
        missing = [function for function in functions if not hasattr(handle, function)]
        assert not missing, f"{path} lacks {missing}"
        if name == "libnccl":
            version = ctypes.c_int()
            assert handle.ncclGetVersion(ctypes.byref(version)) == 0, "ncclGetVersion fails"
            assert version.value >= 21800, f"NCCL {version.value} is too old"
            print(f"NCCL {version.value}")
    assert not wanted, f"{sorted(wanted)}: the image has none"


if __name__ == "__main__":
    main()
