# SPDX-License-Identifier: Apache-2.0
"""That `make chaos` would notice: records of runs that went wrong, each in one way."""
import os
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import verdicts  # noqa: E402
from arrangements import mirrored  # noqa: E402
from history import History, check_epochs, check_staleness  # noqa: E402

EXAMPLES, BATCH, STEPS = 5, 2, 6  # an epoch is 2 + 2 + 1


def share(generation, name, step, examples):
    epoch, position = (step - 1) // 3, (step - 1) % 3 * BATCH
    return f"share {generation} {name} {step} {epoch} {position} " + " ".join(map(str, examples))


def applied(generation, name, step, at):
    return f"applied {generation} {name} {step} {step} {int(at * 1e9)}"


def undisturbed():
    batches = [[0, 1], [2, 3], [4], [4, 3], [2, 1], [0]]
    lines = []
    for step, batch in enumerate(batches, 1):
        lines += [share("1.0.1", "worker-0-0", step, batch), applied("1.0.1", "worker-0-0", step, step)]
    return lines


class Reading(unittest.TestCase):
    def read(self, lines):
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write("\n".join(lines) + "\n")
        self.addCleanup(os.unlink, file.name)
        history = History(file.name).read()
        self.addCleanup(history.file.close)
        return history

    def wrong(self, lines):
        return check_epochs(self.read(lines).lockstep_batches(), STEPS, BATCH, EXAMPLES)

    def test_an_undisturbed_run_is_right(self):
        self.assertEqual(self.wrong(undisturbed()), [])

    def test_a_step_that_was_done_again_counts_in_the_higher_generation(self):
        lines = undisturbed()
        again = [share("1.0.2", "worker-1-1", 6, [0]), applied("1.0.2", "worker-1-1", 6, 9)]
        self.assertEqual(self.wrong(lines + again), [])

    def test_an_example_that_was_taken_twice_is_noticed(self):
        self.assertTrue(self.wrong([line.replace("2 0 2 2 3", "2 0 2 2 2") for line in undisturbed()]))

    def test_a_share_that_is_missing_is_noticed(self):
        self.assertTrue(self.wrong([line for line in undisturbed() if not line.startswith("share 1.0.1 worker-0-0 3 ")]))

    def test_a_share_that_two_computed_in_one_generation_is_noticed(self):
        self.assertTrue(self.wrong(undisturbed() + [share("1.0.1", "worker-1-1", 2, [2, 3])]))

    def judge(self, lines, committed=(), lived=True):
        process = types.SimpleNamespace(name="worker-0-0", index=0, lived_through=lambda start, end: lived)
        crew = types.SimpleNamespace(processes=[process], committed=list(committed))
        return verdicts.check_repeats(mirrored("two", 2), crew, self.read(lines))

    def test_more_than_a_step_repeated_is_noticed_where_the_state_lived_on(self):
        back = undisturbed() + [applied("1.0.2", "worker-0-0", 4, 9)]
        self.assertTrue(self.judge(back))
        self.assertEqual(self.judge(back, lived=False), [])
        self.assertEqual(self.judge(undisturbed() + [applied("1.0.2", "worker-0-0", 6, 9)]), [])

    def test_an_older_checkpoint_than_the_newest_is_noticed(self):
        back = undisturbed() + [applied("1.1.1", "worker-0-1", 3, 9)]
        self.assertTrue(self.judge(back, committed=[(5, 4)], lived=False))
        self.assertEqual(self.judge(back, committed=[(5, 2)], lived=False), [])

    def test_a_step_that_nobody_took_is_noticed(self):
        self.assertTrue(self.judge(undisturbed() + [applied("1.0.2", "worker-0-0", 8, 9)]))

    def stale(self, *events, bound=2):
        lines = [f"ticket 1.0.0 worker-0-0 {event}" for event in events]
        return check_staleness(self.read(lines).tickets, bound)

    def test_a_worker_that_is_too_far_ahead_is_noticed(self):
        ahead = ["join 0 -1", "join 1 -1", "take 1 0", "take 0 1", "done 0 1", "take 0 2", "done 0 2", "take 0 3"]
        self.assertEqual(self.stale(*ahead), [])
        self.assertTrue(self.stale(*ahead, "take 0 4"))
        self.assertEqual(self.stale(*ahead, "leave 1 -1", "take 0 4"), [])
        self.assertEqual(self.stale(*ahead, "done 1 0", "take 0 4"), [])
        self.assertEqual(self.stale(*ahead, "leave 1 -1", "join 1 -1", "take 1 0"), [])

    def test_a_ticket_that_two_hold_is_noticed(self):
        twice = ["join 0 -1", "join 1 -1", "take 0 0", "take 1 0"]
        self.assertTrue(self.stale(*twice))
        self.assertEqual(self.stale(*twice[:3], "leave 0 -1", "take 1 0"), [])
        self.assertEqual(self.stale(*twice[:3], "void 0 -1", "take 1 0"), [])


if __name__ == "__main__":
    unittest.main()
