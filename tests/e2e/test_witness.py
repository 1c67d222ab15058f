# SPDX-License-Identifier: Apache-2.0
"""That tests/e2e/witness.py would notice: statuses that were never true, or not in time."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from witness import LATE, STALE, judge  # noqa: E402


def pod(index, incarnation=1, phase="Running", ready=True, code=None, **metadata):
    state = {"running": {}} if code is None else {"terminated": {"exitCode": code}}
    return {"metadata": {"name": f"rough-worker-{index}-{incarnation}", **metadata,
                         "labels": {"coxswain.dev/role": "worker", "coxswain.dev/index": str(index)}},
            "status": {"phase": phase, "containerStatuses": [{"state": state}],
                       "conditions": [{"type": "Ready", "status": str(ready)}]}}


class World:
    """A job of two workers: its events and its pods', one after the other."""

    def __init__(self):
        self.uid = "rough"
        self.version, self.now, self.jobs, self.pods, self.outages = 0, 0.0, [], [], []
        self.see(pod(0), pod(1))
        self.tell("Running", 2, 2)
        self.passes(STALE + 1)

    def add(self, events, kind, thing):
        self.version += 1
        events.append({"type": kind, "object": thing, "version": self.version, "time": self.now})

    def see(self, *pods):
        for one in pods:
            self.add(self.pods, "MODIFIED", one)

    def gone(self, one):
        self.add(self.pods, "DELETED", one)

    def tell(self, state, active, ready, **more):
        counts = [{"role": "worker", "active": active, "ready": ready}]
        conditions = more.pop("conditions", [])
        if state != "Pending" and all(one["type"] != state for one in conditions):
            conditions = [*conditions, {"type": state, "status": "True"}]
        self.say({"conditions": conditions, "replicaStatuses": counts, **more})

    def say(self, status):
        self.add(self.jobs, "MODIFIED", {"metadata": {"uid": self.uid}, "spec": {"workers": {"replicas": 2}}, "status": status})

    def tell_condition(self, kind, reason, state, active):
        self.tell(state, active, active, conditions=[{"type": kind, "status": "True", "reason": reason}])

    def tell_progress(self, step, saved):
        self.tell("Running", 2, 2, progress={"step": step, "totalSteps": 100, "lastCheckpointStep": saved})

    def passes(self, seconds):
        self.now += seconds

    def lies(self):
        return judge(self.jobs, self.pods, self.outages, self.now)


class Witness(unittest.TestCase):
    def setUp(self):
        self.world = World()

    def assertTold(self):
        self.assertEqual([], self.world.lies())

    def assertLie(self, words):
        lies = self.world.lies()
        self.assertEqual(1, len(lies), lies)
        self.assertIn(words, lies[0])

    def test_what_was_so_a_moment_ago_may_be_told(self):
        self.world.see(pod(1, ready=False))
        self.world.passes(STALE - 1)
        self.world.tell("Running", 2, 2)
        self.assertTold()

    def test_what_was_so_long_ago_may_not_be_told(self):
        self.world.see(pod(1, ready=False))
        self.world.passes(STALE + 1)
        self.world.tell("Running", 2, 2)
        self.assertLie("told {'worker': (2, 2)}")

    def test_what_never_was_may_not_be_told(self):
        self.world.see(pod(1, ready=False))
        self.world.tell("Restarting", 1, 1)
        self.assertLie("told {'worker': (1, 1)}")

    def test_what_comes_later_may_not_be_told_before(self):
        self.world.tell("Restarting", 2, 1)
        self.world.see(pod(1, ready=False))
        self.assertLie("told {'worker': (2, 1)}")

    def test_a_pod_that_is_asked_to_end_is_not_ready(self):
        self.world.see(pod(1, deletionTimestamp="2026-01-01T00:00:00Z"))
        self.world.tell("Restarting", 2, 1)
        self.world.gone(pod(1))
        self.world.see(pod(1, incarnation=2, phase="Pending", ready=False))
        self.world.tell("Restarting", 2, 1)
        self.assertTold()

    def test_a_crew_that_lacks_somebody_does_not_run(self):
        self.world.see(pod(1, ready=False))
        self.world.tell("Running", 2, 1)
        self.assertLie("told Running")

    def test_a_worker_that_has_ended_well_is_not_missed(self):
        self.world.see(pod(1, phase="Succeeded", ready=False, code=0))
        self.world.tell("Running", 1, 1)
        self.assertTold()

    def test_success_is_of_who_leads(self):
        self.world.see(pod(1, phase="Succeeded", ready=False, code=0))
        self.world.tell("Succeeded", 1, 1)
        self.assertLie("told Succeeded")

    def test_a_crew_that_is_whole_does_not_restart(self):
        self.world.tell("Restarting", 2, 2)
        self.assertLie("told Restarting")

    def test_suspended_means_that_no_pod_is_left(self):
        self.world.tell_condition("Suspended", "Suspended", "Suspended", 2)
        self.assertLie("told Suspended")

    def test_a_job_whose_pods_are_gone_is_suspended(self):
        for index in (0, 1):
            self.world.gone(pod(index))
        self.world.tell_condition("Suspended", "Suspended", "Suspended", 0)
        self.assertTold()

    def test_pods_fail_a_job_after_one_has_ended_badly(self):
        self.world.tell_condition("Failed", "BackoffLimitExceeded", "Failed", 2)
        self.assertLie("no pod had ended badly")

    def test_one_that_has_gone_since_had_ended_badly(self):
        self.world.see(pod(1, phase="Failed", ready=False, code=1))
        self.world.gone(pod(1))
        self.world.tell_condition("Failed", "BackoffLimitExceeded", "Failed", 1)
        self.assertTold()

    def test_a_deadline_takes_no_pod(self):
        self.world.tell_condition("Failed", "DeadlineExceeded", "Failed", 2)
        self.assertTold()

    def test_steps_may_be_lost_and_saves_not(self):
        self.world.tell_progress(50, 40)
        self.world.tell_progress(40, 40)
        self.assertTold()
        self.world.tell_progress(39, 39)
        self.assertEqual(2, len(self.world.lies()), self.world.lies())

    def test_a_save_may_be_told_before_its_step(self):
        self.world.tell_progress(39, 40)
        self.world.tell_progress(39, 40)
        self.world.tell_progress(41, 40)
        self.assertTold()
        self.world.tell_progress(39, 40)
        self.assertLie("told step 39 of 100, saved at 40, where 40 was saved, and 41 told")

    def test_a_save_that_lies_behind_the_end_is_an_earlier_jobs(self):
        self.world.tell_progress(100, 120)
        self.assertTold()

    def test_another_job_of_the_name_has_everything_before_it(self):
        self.world.tell_progress(50, 40)
        self.world.uid = "its successor"
        self.world.tell_progress(1, None)
        self.world.tell_progress(20, 10)
        self.assertTold()
        self.world.tell_progress(9, 10)
        self.assertLie("told step 9 of 100")

    def test_no_step_lies_behind_the_last(self):
        self.world.tell_progress(101, 40)
        self.assertLie("told step 101 of 100")

    def test_a_status_that_tells_of_no_pods_says_that_there_are_none(self):
        self.world.say({"conditions": []})
        self.assertLie("told {}")

    def test_a_status_without_pods_is_late_too(self):
        self.world = World()
        self.world.jobs.clear()
        self.world.say({})
        self.world.passes(LATE + 1)
        self.assertLie("told was {}")

    def test_what_stays_is_told_in_time(self):
        self.world.see(pod(1, ready=False))
        self.world.passes(LATE + 1)
        self.assertLie("told was {'worker': (2, 2)}")

    def test_nothing_is_told_while_nobody_can_be_asked(self):
        self.world.see(pod(1, ready=False))
        self.world.passes(LATE)
        self.world.outages.append(self.world.now)
        self.world.passes(5)
        self.world.tell("Restarting", 2, 1)
        self.assertTold()


if __name__ == "__main__":
    unittest.main()
