# SPDX-License-Identifier: Apache-2.0
"""That `make chaos` would notice: records of runs that went wrong, each in one way."""
import json
import os
import random
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import crew as crews  # noqa: E402
import faults  # noqa: E402
import verdicts  # noqa: E402
import watched  # noqa: E402
from arrangements import mirrored, servers  # noqa: E402
from history import History, check_counted, check_epochs, check_held, check_staleness, check_updates  # noqa: E402

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
        process = types.SimpleNamespace(name="worker-0-0", index=0, lived_through=lambda start, end: lived,
                                        was_cut_off=lambda start, end: False)
        crew = types.SimpleNamespace(processes=[process], committed=list(committed))
        return verdicts.check_repeats(mirrored("two", 2), crew, self.read(lines))

    def test_more_than_a_step_repeated_is_noticed_where_the_state_lived_on(self):
        back = undisturbed() + [applied("1.0.2", "worker-0-0", 4, 9)]
        self.assertTrue(self.judge(back))
        self.assertEqual(self.judge(back, lived=False), [])
        self.assertEqual(self.judge(undisturbed() + [applied("1.0.2", "worker-0-0", 6, 9)]), [])

    def test_a_superseded_server_may_end_well_only_where_the_last_checkpoint_is_of_it(self):
        former = types.SimpleNamespace(name="ps-1-4", role="ps", superseded=True, code=0)
        crew = types.SimpleNamespace(processes=[former])
        lines = ["server 1.0.1 ps-1-4 saved 0 6 d", "server 1.0.1 ps-1-9 saved 0 6 e",
                 "checkpoint 1.0.1 worker-0-0 6 d", "checkpoint 1.0.1 worker-0-0 6 e"]
        self.assertTrue(verdicts.check_superseded(crew, self.read(lines)))
        self.assertEqual(verdicts.check_superseded(crew, self.read(lines[:3])), [])
        self.assertTrue(verdicts.check_superseded(crew, self.read(lines[1:3])))

    def test_what_one_that_died_had_only_begun_is_not_repeated(self):
        ahead = [*undisturbed(), share("1.0.1", "worker-1-1", 7, [1]), applied("1.0.2", "worker-0-0", 6, 9)]
        self.assertEqual(self.judge(ahead), [])
        self.assertTrue(self.judge([*ahead[:-1], share("1.0.1", "worker-0-0", 7, [3]), ahead[-1]]))

    def parted(self, committed=(), **what):
        """A record in which worker 1 alone has applied step 6 and begun the next, and the crew has gone on from step 5 without it."""
        lines = [line for line in undisturbed() if not line.startswith("applied 1.0.1 worker-0-0 6 ")]
        lines += [applied("1.0.1", "worker-1-1", 6, 6), share("1.0.1", "worker-1-1", 7, [1]), share("1.0.2", "worker-0-0", 6, [0]),
                  applied("1.0.2", "worker-0-0", 6, 9)]
        processes = [crews.Process("worker", index, index, None, None) for index in range(2)]
        for process in processes:
            process.started = 0
        for name, value in what.items():
            setattr(processes[1], name, value)
        crew = types.SimpleNamespace(processes=processes, committed=list(committed))
        return verdicts.check_repeats(mirrored("two", 2, elastic=(1, 2)), crew, self.read(lines))

    def test_who_was_killed_is_no_survivor_however_late_its_end_was_seen(self):
        self.assertTrue(self.parted())
        self.assertEqual(self.parted(killed=6.5, ended=12), [])
        self.assertTrue(self.parted(killed=10, ended=12))

    def test_those_whose_state_lived_on_may_be_a_step_behind_the_checkpoint_of_who_died(self):
        self.assertEqual(self.parted(killed=6.5, ended=6.5, committed=[(6.6, 6)]), [])
        ahead = [*undisturbed(), share("1.0.1", "worker-1-1", 7, [1]), applied("1.0.2", "worker-0-0", 6, 9)]
        self.assertEqual(self.judge(ahead, committed=[(6.6, 6)]), [])
        self.assertTrue(self.judge(ahead, committed=[(6.6, 6)], lived=False))

    def test_who_was_cut_off_is_dead_to_its_crew_until_it_is_back(self):
        self.assertEqual(self.parted(cuts=[6.5]), [])
        self.assertTrue(self.parted(cuts=[10]))

    def left(self, chiefs, server):
        """What is said of two updates that were lost, by how the chiefs and a server have ended."""
        processes = [types.SimpleNamespace(role=role, index=0, code=code, ended=2 if code else 3, frozen=[])
                     for role, code in [*(("worker", code) for code in chiefs), ("ps", server), ("ps", 0)]]
        crew = types.SimpleNamespace(processes=processes, chief=("worker", 0),
                                     chief_logs=lambda: ["2 acknowledged updates were lost with their ps"])
        return verdicts.check_leaving(servers("two", "Async"), crew, self.read(undisturbed()))

    def test_what_is_lost_by_those_who_only_leave_is_noticed(self):
        self.assertTrue(self.left([0], 143))
        self.assertTrue(self.left([143, 0], 143))
        self.assertEqual(self.left([-9, 0], 143), [])
        self.assertEqual(self.left([143, 0], -9), [])

    def test_an_older_checkpoint_than_the_newest_is_noticed(self):
        back = undisturbed() + [applied("1.1.1", "worker-0-1", 3, 9)]
        self.assertTrue(self.judge(back, committed=[(5, 4)], lived=False))
        self.assertEqual(self.judge(back, committed=[(5, 2)], lived=False), [])

    def test_a_server_that_starts_from_an_older_checkpoint_than_the_newest_is_noticed(self):
        def started(at, line):
            process = types.SimpleNamespace(name="ps-0-4", started=at)
            crew = types.SimpleNamespace(processes=[process], committed=[(4, 40), (8, 80)], logs_of=lambda p: [line])
            return verdicts.check_newest(crew)
        self.assertTrue(started(9, "starts from the checkpoint of step 40"))
        self.assertTrue(started(9, "resumes from the checkpoint of step 40, of a PeerToPeer crew"))
        self.assertEqual(started(9, "starts from the checkpoint of step 80"), [])
        self.assertEqual(started(5, "starts from the checkpoint of step 40"), [])  # the next was written meanwhile
        self.assertEqual(started(9, "step 40"), [])

    def test_who_was_superseded_before_its_first_step_went_back_to_nothing(self):
        lines = undisturbed()
        lines += [applied("1.0.3", "worker-0-2", 5, 7), applied("1.0.3", "worker-0-2", 6, 8)]
        lines += [applied("1.0.2", "worker-0-1", 3, 9)]  # it stood still meanwhile
        crew = types.SimpleNamespace(processes=[], committed=[(4.5, 4), (8.5, 6)])
        self.assertEqual(verdicts.check_repeats(mirrored("one", 1), crew, self.read(lines)), [])
        crew.committed.append((6.5, 5))
        self.assertTrue(verdicts.check_repeats(mirrored("one", 1), crew, self.read(lines)))

    def test_a_step_that_nobody_took_is_noticed(self):
        self.assertTrue(self.judge(undisturbed() + [applied("1.0.2", "worker-0-0", 8, 9)]))

    def stale(self, *events, bound=2):
        lines, chief = [], 0
        for event in events:
            if event == "chief":
                chief += 1
            else:
                lines.append(f"ticket 1.0.{chief} worker-0-{chief} {event}")
        return check_staleness(self.read(lines).tickets, bound)

    def test_a_worker_that_is_too_far_ahead_is_noticed(self):
        ahead = ["join 0 -1", "join 1 -1", "take 1 0", "take 0 1", "done 0 1", "take 0 2", "done 0 2", "take 0 3"]
        self.assertEqual(self.stale(*ahead), [])
        self.assertTrue(self.stale(*ahead, "take 0 4"))
        self.assertEqual(self.stale(*ahead, "leave 1 -1", "take 0 4"), [])
        self.assertEqual(self.stale(*ahead, "done 1 0", "take 0 4"), [])
        self.assertEqual(self.stale(*ahead, "leave 1 -1", "join 1 -1", "take 1 0"), [])

    def test_a_clock_is_brought_along(self):
        ahead = ["join 0 0", "join 1 0", "take 1 0", "take 0 1", "done 0 1", "take 0 2", "done 0 2", "take 0 3", "done 0 3"]
        self.assertTrue(self.stale(*ahead, "join 1 4", "take 0 4"))
        self.assertEqual(self.stale(*ahead, "leave 1 -1", "join 1 3", "take 0 4"), [])
        self.assertEqual(self.stale(*ahead, "chief", "join 0 3", "join 1 1", "take 0 4"), [])
        self.assertTrue(self.stale(*ahead, "chief", "join 0 3", "join 1 0", "take 0 4", "take 0 5"))
        self.assertTrue(self.stale(*ahead, "chief", "join 0 0", "join 1 0", "take 0 4"))

    def test_a_worker_that_is_let_in_far_behind_the_others_is_noticed(self):
        ahead = ["join 0 0", *(event for ticket in range(9) for event in (f"take 0 {ticket}", f"done 0 {ticket}"))]
        self.assertEqual(self.stale(*ahead, "leave 1 -1", "join 1 6"), [])
        self.assertTrue(self.stale(*ahead, "leave 1 -1", "join 1 5"))
        self.assertTrue(self.stale(*ahead, "chief", "leave 1 -1", "join 1 0"))
        self.assertEqual(self.stale(*ahead, "chief", "back 0 -1", "leave 1 -1", "join 1 0"), [])

    def test_what_a_chief_had_not_heard_of_counts(self):
        ahead = ["join 0 0", "join 1 0", "take 1 0", "take 0 1", "done 0 1", "take 0 2", "done 0 2", "take 0 3", "done 0 3"]
        self.assertTrue(self.stale(*ahead, "join 1 0", "take 0 4"))
        self.assertEqual(self.stale(*ahead, "join 1 0", "late 1 0", "clock 1 1", "take 0 4"), [])
        self.assertTrue(self.stale(*ahead, "join 1 0", "clock 1 9"))

    def test_a_ticket_that_two_hold_is_noticed(self):
        twice = ["join 0 -1", "join 1 -1", "take 0 0", "take 1 0"]
        self.assertTrue(self.stale(*twice))
        self.assertEqual(self.stale(*twice[:3], "leave 0 -1", "take 1 0"), [])
        self.assertEqual(self.stale(*twice[:3], "void 0 -1", "take 1 0"), [])
        self.assertTrue(self.stale(*twice[:3], "join 0 0", "hold 0 0", "take 1 0"))
        self.assertEqual(self.stale(*twice[:3], "join 0 0", "hold 0 0", "done 0 0"), [])

    def counted(self, *events):
        lines = [f"ticket {event}" if event[1] == "." else f"ticket 1.0.0 worker-0-0 {event}" for event in events]
        return check_counted(self.read(lines).tickets, 4)

    def test_a_ticket_that_counts_twice_or_never_is_noticed(self):
        all_done = ["void 0 0", "done 0 0", "done 1 1", "done 0 3", "done 1 2"]
        self.assertEqual(self.counted(*all_done), [])
        self.assertTrue(self.counted(*all_done, "done 0 3"))
        self.assertTrue(self.counted(*all_done, "late 0 3"))
        self.assertEqual(self.counted(*all_done, "again 0 3"), [])
        self.assertEqual(self.counted(*all_done[:-1], "late 1 2"), [])
        self.assertTrue(self.counted(*all_done[:-1]))
        again = [*all_done[:3], "1.1.0 worker-0-1 void 0 1", "1.1.0 worker-0-1 done 0 1"]
        rest = ["1.1.0 worker-0-1 done 0 2", "1.1.0 worker-0-1 done 0 3"]
        self.assertEqual(self.counted(*again, *rest), [])
        self.assertTrue(self.counted(*again, "1.1.0 worker-0-1 done 0 0", *rest))
        self.assertTrue(self.counted(*again, rest[0]))
        self.assertEqual(self.counted(*again, *rest, "done 0 3"), [])  # of a superseded chief
        kept = [*again[:-1], "1.1.0 worker-0-1 kept 0 3", *again[-1:], rest[0]]
        self.assertEqual(self.counted(*kept), [])
        self.assertTrue(self.counted(*kept, rest[1]))

    def test_nobody_succeeds_one_who_stood_still_while_the_others_finished(self):
        for done in (False, True):
            did = []
            victim = types.SimpleNamespace(freeze=lambda: did.append("freeze"), thaw=lambda: did.append("thaw"))
            crew = types.SimpleNamespace(supersede=lambda process: did.append("supersede"))
            faults.replace_frozen(types.SimpleNamespace(crew=crew, done=done, rest=lambda seconds: None, random=random), victim)
            self.assertEqual(did, ["freeze", "thaw"] if done else ["freeze", "supersede", "thaw"])

    def test_a_process_that_stopped_recording_is_noticed(self):
        crew = types.SimpleNamespace(logs=lambda: ["step 3\n", "warning: the record of steps ends here  why=No space left\n"])
        self.assertTrue(verdicts.check_record(crew))
        self.assertEqual(verdicts.check_record(types.SimpleNamespace(logs=lambda: ["step 3\n"])), [])

    def updates(self, *events, total=4):
        lines = [f"checkpoint 1.0.0 {name} {rest}" if fate == "commits" else f"server 1.0.0 {name} {fate} 0 {rest}"
                 for name, fate, rest in (event.split(" ", 2) for event in events)]
        return check_updates(self.read(lines).servers, total)

    def test_an_update_that_is_applied_twice_is_noticed(self):
        start = ["ps-0-1 loaded 0 -", *(f"ps-0-1 applied {ticket} -" for ticket in (0, 2, 1, 3))]
        self.assertEqual(self.updates(*start), ([], 0))
        self.assertTrue(self.updates(*start, "ps-0-1 applied 2 -")[0])
        self.assertTrue(self.updates(*start, "ps-0-1 applied 4 -")[0])
        committed = ["ps-0-1 saved 77 .saving-shards.incarnation-4", "worker-0-4 commits 1 .saving-shards.incarnation-4"]
        saved = [*start[:3], *committed, *start[3:], "ps-0-1 saved 78 .saving-shards.incarnation-4",
                 "ps-0-5 loaded 2 step-00000001.attempt-1.incarnation-4"]
        again = ["ps-0-5 applied 1 -", "ps-0-5 applied 3 -"]
        self.assertEqual(self.updates(*saved, *again), ([], 0))
        self.assertTrue(self.updates(*saved, *again, "ps-0-5 applied 2 -")[0])
        in_bucket = [line.replace(".saving-shards.incarnation-4", ".saving-shards.1.4.2") for line in saved]
        self.assertEqual(self.updates(*in_bucket, *again), ([], 0))
        self.assertTrue(self.updates(*saved[:-1], "ps-0-5 loaded 2 step-00000002.attempt-1.incarnation-4", *again)[0])

    def test_updates_that_a_server_lacks_are_counted(self):
        start = ["ps-0-1 loaded 0 -", "ps-1-2 loaded 0 -", *(f"ps-{i}-{i + 1} applied {n} -" for n in range(4) for i in (0, 1))]
        self.assertEqual(self.updates(*start), ([], 0))
        self.assertEqual(self.updates(*start, "ps-1-3 loaded 0 -"), ([], 4))
        self.assertEqual(self.updates(*start, "ps-1-3 loaded 0 -", "ps-1-3 applied 3 -"), ([], 3))
        self.assertEqual(self.updates(*start[:-1]), ([], 1))

    def held(self, *events):
        lines = [f"peer 1.0.0 {event}" for event in events]
        return check_held(self.read(lines).peers)

    def test_two_lines_in_one_are_refused(self):
        server = "server 1.0.1 ps-0-0 update 1 7 worker-0-0"
        for line in (server + server, server + applied("1.0.1", "worker-0-0", 1, 1), "checkpoint 1.0.1 worker-0-0 6 step-6" + server,
                     applied("1.0.1", "worker-0-0", 1, 1)[:-3] + server, "lost 1.0.1 worker-0-0 1", "lots 1.0.1 worker-0-0 1 1 1 1", ""):
            with self.assertRaises(ValueError, msg=line):
                self.read(undisturbed() + [line])

    def test_a_peer_that_goes_on_behind_what_nobody_has_is_noticed(self):
        start = ["worker-0-0 restored 0 0", "worker-0-0 begins 0 0", "worker-1-1 begins 1 0", "worker-1-1 finished 1 24",
                 "worker-0-0 has 1 24", "worker-1-1 finished 1 48"]
        self.assertEqual(self.held(*start, "worker-1-2 begins 1 24"), [])
        self.assertTrue(self.held(*start, "worker-1-2 begins 1 48"))
        self.assertTrue(self.held(*start, "worker-1-2 begins 1 48", "worker-0-0 has 1 48"))
        self.assertTrue(self.held(*start, "worker-0-0 has 0 48", "worker-1-2 begins 1 48"))
        self.assertEqual(self.held(*start, "worker-2-3 has 1 48", "worker-1-2 begins 1 48"), [])

    def test_what_was_before_a_checkpoint_that_peers_go_back_to_is_void(self):
        back = ["worker-0-0 has 1 48", "worker-0-3 restored 0 36", "worker-0-3 begins 0 36"]
        self.assertEqual(self.held(*back, "worker-1-4 begins 1 0"), [])
        self.assertTrue(self.held(*back, "worker-1-4 begins 1 48"))
        self.assertTrue(self.held("worker-0-3 begins 0 36"))
        back = [*back, "worker-0-3 has 1 24"]
        self.assertEqual(self.held(*back, "worker-1-4 begins 1 24"), [])
        self.assertTrue(self.held(*back, "worker-1-4 begins 1 48"))

    def test_what_those_have_who_come_back_after_that_is_not_void(self):
        back = ["worker-2-2 has 1 48", "worker-0-3 restored 0 36", "worker-0-3 has 1 24", "worker-0-3 begins 0 36"]
        self.assertEqual(self.held(*back, "worker-2-2 finished 2 60", "worker-1-4 begins 1 48"), [])
        self.assertTrue(self.held(*back, "worker-2-2 finished 2 60", "worker-1-4 begins 1 60"))

    def test_a_pod_that_was_created_twice_is_noticed(self):
        def seen(*uids):
            owner = [{"kind": "TrainingJob", "name": "a", "uid": "of-the-job"}]
            return "\n".join(json.dumps({"type": "ADDED", "object": {"metadata": {
                "name": name, "ownerReferences": owner, "uid": uid}}}) for name, uid in uids)
        whole = seen(("a-worker-0-0", "1"), ("a-worker-1-1", "2"), ("a-worker-1-1", "2"))
        self.assertIsNone(watched.complaint(whole + '\n{"type": "ADD', 2))
        self.assertIn("only", watched.complaint(whole, 3))
        self.assertIn("only", watched.complaint("", 2))
        self.assertIn("twice: a-worker-1-1", watched.complaint(whole + seen(("a-worker-1-1", "3")), 2))


if __name__ == "__main__":
    unittest.main()
