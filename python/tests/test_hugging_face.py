# SPDX-License-Identifier: Apache-2.0
"""What the worker exports as a GPT-2 of Hugging Face, loaded by transformers: its logits and its most probable tokens."""

import io
import os
import pathlib
import subprocess
from typing import Any

import numpy as np
import pytest
from worker import Array, assert_close

CONTEXT = 24
WORKER = pathlib.Path(os.environ.get("BUILD") or pathlib.Path(__file__).parents[2] / "build").resolve() / "coxswain-worker"
JOB = """
model: {{preset: {preset}, width: 32, depth: 2, heads: 2, context: {context}, vocabulary: 256}}
data: {{format: Bytes, storage: runs, train: {{text: corpus.txt}}, validation: {{last: 4}}}}
training: {{steps: 30, batchSize: 8, seed: 3, optimizer: {{type: AdamW, learningRate: 0.01}}}}
strategy: {{type: OneDevice}}
storage: [{{name: runs}}]
export: {{storage: runs, path: out/model.safetensors, names: HuggingFace}}
"""


def run(folder: pathlib.Path, *options: str) -> bytes:
    command = [WORKER, "--job", folder / "job.yaml", "--storage", f"runs={folder}", "--threads", "1", *options]
    return subprocess.run(command, check=True, capture_output=True, timeout=120).stdout


@pytest.mark.skipif(not WORKER.exists(), reason="the worker is not built")
@pytest.mark.parametrize("preset", ["gpt-bytes", "gpt2-124m"])
def test_an_exported_gpt2(tmp_path: pathlib.Path, preset: str) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    text = b"Sphinx of black quartz, judge my vow. " * 60
    (tmp_path / "corpus.txt").write_bytes(text)
    (tmp_path / "job.yaml").write_text(JOB.format(preset=preset, context=CONTEXT))
    run(tmp_path)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()

    logits: Array = np.load(io.BytesIO(run(tmp_path, "--predict", "all", "--outputs")))
    windows = len(text) // CONTEXT if len(text) % CONTEXT else len(text) // CONTEXT - 1
    first = (windows - 4) * CONTEXT
    held_out = np.frombuffer(text, np.uint8)[first : first + 4 * CONTEXT].reshape(4, CONTEXT).astype(np.int64)
    with torch.no_grad():
        wanted = model(torch.from_numpy(held_out)).logits.numpy()
    assert_close({"logits": logits}, {"logits": wanted}, 2e-5)

    generated = run(tmp_path, "--generate", "Sphinx", "--tokens", "12", "--temperature", "0")[:18]
    prompt = torch.tensor([list(b"Sphinx")])
    greedy = model.generate(prompt, max_new_tokens=12, do_sample=False, pad_token_id=0)[0]
    assert bytes(greedy.tolist()) == generated
