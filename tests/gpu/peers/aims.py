# SPDX-License-Identifier: Apache-2.0
"""What gpu-bench aims for on one H200, and which of it is reached."""

# what -> (beside whom, in words; of which figure; at least, or at most)
AIMS = {
    "gpt2": [("its peak", "mfu", ">=", 0.50), ("PyTorch compiled", "ratio", ">=", 1.15)],
    "resnet50": [("PyTorch eager", "ratio", ">=", 1.2), ("PyTorch compiled", "ratio", ">=", 1.2)],
    "lenet": [("PyTorch graph", "ratio", ">=", 2.0)],
    "start": [("", "seconds", "<=", 3.0)],
    "checkpoints": [("", "share", "<=", 0.01)],
    "determinism": [("Run", "share", "<=", 0.03)],
}


def in_words(figure, relation, bound):
    bound = f"{bound:g} x" if figure == "ratio" else f"{bound:g} s" if figure == "seconds" else f"{100 * bound:g} %"
    return f"{'at least' if relation == '>=' else 'at most'} {bound}"


def judge(row):
    """(the aim in words, whether it is reached), or None where nothing is aimed for or nothing is known."""
    for beside, figure, relation, bound in AIMS.get(row["part"], []):
        value = row.get(figure)
        if row["beside"] == beside and value is not None:
            return in_words(figure, relation, bound), value >= bound if relation == ">=" else value <= bound
    return None


def unlooked(rows):
    """Aims that no row tells of."""
    said = {(row["part"], row["beside"]) for row in rows if judge(row) is not None}
    return [f"{part}{' beside ' + beside if beside else ''}: {in_words(*rest)}"
            for part, aims in AIMS.items() for beside, *rest in aims if (part, beside) not in said]


def summary(rows):
    """The last lines, and whether all that was looked at is reached."""
    judged = [(row, judge(row)) for row in rows]
    judged = [(row, verdict) for row, verdict in judged if verdict is not None]
    missed = [f"{row['what']}{' beside ' + row['beside'] if row['beside'] else ''}: {words}"
              for row, (words, reached) in judged if not reached]
    lines = [f"{len(judged) - len(missed)} of {len(judged)} aims reached" + "".join(f"; missed: {words}" for words in missed) + "."]
    if unlooked(rows):
        lines.append("Not looked at: " + "; ".join(unlooked(rows)) + ".")
    return lines, not missed
