# SPDX-License-Identifier: Apache-2.0
"""The Trainer of Hugging Face Transformers on several workers: a small GPT-2 from scratch learns numbers that count up.

torchrun starts it once for each device of each pod, with what the operator tells it in PET_*. The Trainer sends its progress to the
operator by itself. When a worker is lost, the operator starts the whole crew over, and the Trainer goes on from its
last complete checkpoint.
"""
import os
import pathlib

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

STEPS = int(os.environ.get("STEPS", 300))
LENGTH = 16
WORDS = 64


class Counting(torch.utils.data.Dataset):
    """Sequences n, n + 1, n + 2, … modulo WORDS."""

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        words = (torch.arange(LENGTH) + index) % WORDS
        return {"input_ids": words, "labels": words}


def step_of(checkpoint):
    return int(checkpoint.name.rsplit("-", 1)[1])


def last_complete_checkpoint(folder):
    """The Trainer writes trainer_state.json last. Its own get_last_checkpoint also takes a folder that a killed process left without it."""
    return max((state.parent for state in folder.glob("checkpoint-*/trainer_state.json")), key=step_of, default=None)


def main():
    torch.set_num_threads(1)
    folder = pathlib.Path(os.environ["COXSWAIN_CHECKPOINT_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    arguments = TrainingArguments(output_dir=str(folder), max_steps=STEPS, per_device_train_batch_size=8, learning_rate=3e-3,
                                  use_cpu=not torch.cuda.is_available(),  # else each pod would train alone without GPUs
                                  logging_steps=10, save_steps=20, save_total_limit=2, seed=1)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0))
    checkpoint = last_complete_checkpoint(folder)
    first = step_of(checkpoint) if checkpoint else 0
    print(f"rank {arguments.process_index} of {arguments.world_size}, attempt {os.environ['COXSWAIN_ATTEMPT']}: begins after step {first}")
    trainer = Trainer(model=model, args=arguments, train_dataset=Counting())
    result = trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    print(f"done: loss {result.training_loss:.4f}")


main()
