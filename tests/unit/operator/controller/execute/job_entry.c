/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/job_entry.h"

#include <criterion/criterion.h>

static struct job_entry *entry;

static void init(void)
{
    entry = job_entry_new("n/a");
    job_entry_set_job(entry, "first");
}

static void fini(void)
{
    job_entry_free(entry);
}

TestSuite(job_entry, .init = init, .fini = fini);

Test(job_entry, a_refusal_of_an_earlier_job_is_not_the_next_ones)
{
    job_entry_set_job(entry, NULL);
    job_entry_set_obstacle(entry, "first", OBSTACLE_REJECTED, NULL, "the answer came late", 0);
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_NONE);
    job_entry_set_job(entry, "second");
    job_entry_set_obstacle(entry, "first", OBSTACLE_REJECTED, NULL, "the answer came later still", 0);
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_NONE);
    job_entry_set_obstacle(entry, "second", OBSTACLE_QUOTA, NULL, "full", 0);
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_QUOTA);
}

Test(job_entry, another_job_of_the_name_starts_without_memories)
{
    job_entry_set_obstacle(entry, "first", OBSTACLE_QUOTA, NULL, "full", 0);
    entry->memory.counts_since_ms = entry->memory.pods_changed_ms = entry->memory.behind_since_ms = 7;
    job_entry_set_job(entry, "first");
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_QUOTA);
    job_entry_set_job(entry, "second");
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_NONE);
    cr_assert_eq(entry->memory.counts_since_ms, FIELD_UNSET);
    cr_assert_eq(entry->memory.pods_changed_ms, FIELD_UNSET);
    cr_assert_eq(entry->memory.behind_since_ms, FIELD_UNSET);
}

Test(job_entry, a_job_is_new_until_its_status_is_written)
{
    struct job_status written = {.attempt = 1, .incarnation = 1}, blank = {0};
    entry->memory.born_ms = 5000;
    job_entry_see_status(entry, &blank);
    cr_assert_eq(entry->memory.born_ms, 5000);
    job_entry_see_status(entry, &written);
    job_entry_see_status(entry, &blank);
    cr_assert_eq(entry->memory.born_ms, FIELD_UNSET, "emptied is not new");
}

Test(job_entry, a_job_that_was_suspended_is_not_new)
{
    struct job_status suspended = {0};
    suspended.conditions[CONDITION_SUSPENDED].status = CONDITION_TRUE;
    entry->memory.born_ms = 5000;
    job_entry_see_status(entry, &suspended);
    cr_assert_eq(entry->memory.born_ms, FIELD_UNSET);
}

Test(job_entry, what_was_noted_moves_with_a_clock_that_is_set)
{
    entry->memory.counts_since_ms = entry->memory.pods_changed_ms = 5000;
    entry->poll_ms = 6000;
    entry->memory.obstacle.retry_ms = 7000;
    job_entry_clock_set(entry, 100, NULL);
    job_entry_clock_set(entry, -1000, NULL);
    cr_assert_eq(entry->memory.counts_since_ms, 4100);
    cr_assert_eq(entry->memory.pods_changed_ms, 4100);
    cr_assert_eq(entry->poll_ms, 5100);
    cr_assert_eq(entry->memory.obstacle.retry_ms, 6100);
    cr_assert_eq(entry->memory.behind_since_ms, FIELD_UNSET);
}

Test(job_entry, times_of_the_status_move_while_they_stay_what_they_were)
{
    struct job_status status = {.start_ms = 50000, .completion_ms = FIELD_UNSET, .backoff_until_ms = 70000};
    job_entry_clock_set(entry, 100, &status);
    job_entry_clock_set(entry, -1000, &status);
    cr_assert_eq(status_moves_by(entry->status_moves, &status, STATUS_TIME_START), -900);
    cr_assert_eq(status_moves_by(entry->status_moves, &status, STATUS_TIME_BACKOFF), -900);
    cr_assert_eq(status_moves_by(entry->status_moves, &status, STATUS_TIME_COMPLETION), 0);
    status.completion_ms = 80000;
    status.backoff_until_ms = 90000;
    cr_assert_eq(status_moves_by(entry->status_moves, &status, STATUS_TIME_COMPLETION), 0, "noted since");
    cr_assert_eq(status_moves_by(entry->status_moves, &status, STATUS_TIME_BACKOFF), 0, "noted since");
    job_entry_clock_set(entry, 10, &status);
    cr_assert_eq(status_moves_by(entry->status_moves, &status, STATUS_TIME_START), -890);
    cr_assert_eq(status_moves_by(entry->status_moves, &status, STATUS_TIME_COMPLETION), 10);
    job_entry_set_job(entry, "second");
    cr_assert_eq(status_moves_by(entry->status_moves, &status, STATUS_TIME_START), 0);
}

Test(job_entry, the_same_refusal_again_waits_longer)
{
    job_entry_set_obstacle(entry, "first", OBSTACLE_QUOTA, NULL, "full", 0);
    int64_t first_ms = entry->memory.obstacle.retry_ms;
    job_entry_set_obstacle(entry, "first", OBSTACLE_QUOTA, NULL, "full", 0);
    cr_assert_eq(entry->memory.obstacle.retry_ms, 2 * first_ms);
}

Test(job_entry, an_outage_is_never_waited_for_long)
{
    for (int i = 0; i < 20; i++)
        job_entry_set_obstacle(entry, "first", OBSTACLE_OUTAGE, NULL, "no answer", 0);
    cr_assert_leq(entry->memory.obstacle.retry_ms, 10000);
}

static struct pod_record *pod_of(const char *job_uid, int64_t index, int64_t incarnation)
{
    SCOPED_BUFFER conditions;
    SCOPED_JSON *nothing = json_new_object();
    struct pod_view view;
    pod_view_read(nothing, &view, &conditions);
    view.job_uid = view.owner_uid = job_uid;
    view.role = ROLE_WORKER;
    view.index = index;
    view.incarnation = incarnation;
    view.member = view.current = true;
    return pod_record_new(&view);
}

Test(job_entry, what_vanished_is_remembered_for_the_newest_incarnation)
{
    SCOPED_FREE struct pod_record *old = pod_of("first", 0, 1), *newer = pod_of("first", 1, 2),
                                  *other = pod_of("another", 2, 3);
    job_entry_add_pod(entry, old);
    job_entry_add_pod(entry, newer);
    job_entry_add_pod(entry, other);
    job_entry_remove_pod(entry, newer);
    job_entry_remove_pod(entry, old);
    job_entry_remove_pod(entry, other);
    cr_assert_eq(entry->memory.gone_count, 1);
    cr_assert_eq(entry->memory.gone_incarnation, 2);
    cr_assert_eq(entry->memory.gone[0].index, 1);
    job_entry_set_job(entry, "second");
    cr_assert_eq(entry->memory.gone_count, 0);
}

static void lose_pod_that_ended(int exit_code, int64_t attempt, bool current)
{
    SCOPED_FREE struct pod_record *plain = pod_of("first", 1, 2);
    struct pod_view view = pod_record_view(plain, &(struct pod_room){0});
    view.exit_code = exit_code;
    view.attempt = attempt;
    view.current = current;
    SCOPED_FREE struct pod_record *pod = pod_record_new(&view);
    job_entry_add_pod(entry, pod);
    job_entry_remove_pod(entry, pod);
}

Test(job_entry, a_finished_pod_is_remembered_after_removal_until_a_status_has_it)
{
    struct job_status status = {.incarnation = 2, .attempt = 1};
    job_entry_see_status(entry, &status);
    lose_pod_that_ended(EXIT_CODE_NONE, 1, true);
    lose_pod_that_ended(137, 1, true);
    lose_pod_that_ended(0, 1, false);
    cr_assert_eq(entry->memory.finished_count, 0);
    lose_pod_that_ended(0, 1, true);
    cr_assert_eq(entry->memory.finished_count, 1);
    cr_assert_eq(entry->memory.finished[0].index, 1);
    cr_assert_eq(entry->memory.finished[0].attempt, 1);
    lose_pod_that_ended(0, 2, true);
    job_entry_forget_finished(entry, 1);
    cr_assert_eq(entry->memory.finished_count, 1);
    cr_assert_eq(entry->memory.finished[0].attempt, 2, "it was removed while that status was written");
    job_entry_set_job(entry, "second");
    cr_assert_eq(entry->memory.finished_count, 0);
}

Test(job_entry, pods_that_go_after_the_end_take_no_room)
{
    struct job_status status = {.incarnation = 2, .attempt = 1};
    status.conditions[CONDITION_SUCCEEDED].status = CONDITION_TRUE;
    job_entry_see_status(entry, &status);
    lose_pod_that_ended(0, 1, true);
    cr_assert_eq(entry->memory.finished_count, 0);
}

/* An orphan comes and goes. */
static void lose_orphan(int64_t index, int64_t incarnation, bool adoptable)
{
    SCOPED_FREE struct pod_record *owned = pod_of("first", index, incarnation);
    struct pod_view view = pod_record_view(owned, &(struct pod_room){0});
    view.owner_uid = "";
    view.adoptable = adoptable;
    view.attempt = 1;
    SCOPED_FREE struct pod_record *orphan = pod_record_new(&view);
    job_entry_add_pod(entry, orphan);
    job_entry_remove_pod(entry, orphan);
}

Test(job_entry, one_that_lost_its_owner_before_it_vanished_is_remembered_too)
{
    struct job_status status = {.incarnation = 2, .attempt = 1};
    lose_orphan(0, 1, true);
    cr_assert_eq(entry->memory.gone_count, 1, "of a first crew unrecorded");
    job_entry_see_status(entry, &status);
    lose_orphan(1, 2, true);
    cr_assert_eq(entry->memory.gone_count, 1);
    cr_assert_eq(entry->memory.gone_incarnation, 2);
    cr_assert_eq(entry->memory.gone[0].index, 1);
}

Test(job_entry, a_strangers_pod_that_goes_counts_for_nothing)
{
    struct job_status status = {.incarnation = 2, .attempt = 1};
    SCOPED_FREE struct pod_record *own = pod_of("first", 0, 2);
    job_entry_see_status(entry, &status);
    job_entry_add_pod(entry, own);
    lose_orphan(1, 2, false);
    cr_assert_eq(entry->memory.gone_count, 0, "it only held a name that the job needs");
    lose_orphan(1, 999, true);
    cr_assert_eq(entry->memory.gone_incarnation, 0, "no operator has come to that incarnation");
    job_entry_remove_pod(entry, own);
    cr_assert_eq(entry->memory.gone_count, 1);
    cr_assert_eq(entry->memory.gone_incarnation, 2, "a loss is still told from it");
}

Test(job_entry, whether_a_pod_was_made_is_known_once_the_cache_has_shown_it)
{
    SCOPED_FREE struct pod_record *own = pod_of("first", 1, 2), *another = pod_of("another", 1, 2);
    const struct action create = {.type = ACTION_CREATE_POD, .role = ROLE_WORKER, .index = 1, .incarnation = 2};
    const struct action later = {.type = ACTION_CREATE_POD, .role = ROLE_WORKER, .index = 1, .incarnation = 3};
    job_entry_note_unsure(entry, "another", &create);
    cr_assert_eq(entry->memory.unsure_count, 0);
    job_entry_note_unsure(entry, "first", &create);
    job_entry_note_unsure(entry, "first", &create);
    cr_assert_eq(entry->memory.unsure_count, 1);
    job_entry_note_sure(entry, "first", &later);
    job_entry_add_pod(entry, another);
    cr_assert_eq(entry->memory.unsure_count, 1);
    job_entry_add_pod(entry, own);
    cr_assert_eq(entry->memory.unsure_count, 0);
    job_entry_note_unsure(entry, "first", &later);
    job_entry_set_job(entry, "second");
    cr_assert_eq(entry->memory.unsure_count, 0);
}

static bool vanishes(struct pod_view view, int64_t now_ms)
{
    SCOPED_FREE struct pod_record *pod = pod_record_new(&view);
    job_entry_note_vanished(entry, pod, now_ms);
    return entry->memory.vanished_ms == now_ms && entry->memory.vanished_attempt == view.attempt;
}

Test(job_entry, the_message_of_a_pod_whose_crew_hung_is_kept_when_it_vanishes)
{
    struct plan plan = {.hung_attempt = 1, .reports_hang = true};
    SCOPED_FREE struct pod_record *plain = pod_of("first", 1, 2);
    struct pod_view view = pod_record_view(plain, &(struct pod_room){0});
    view.attempt = 1;
    view.termination_message = "where it stood";
    vanishes(view, 1000);
    cr_assert_eq(entry->memory.hung_count, 0, "its crew did not hang");
    job_entry_note_hang(entry, 1);
    vanishes(view, 1000);
    cr_assert_eq(entry->memory.hung_count, 1);
    cr_assert_str_eq(entry->memory.hung[0].pod, view.name);
    cr_assert_str_eq(entry->memory.hung[0].message, "where it stood");
    view.attempt = 2;
    vanishes(view, 1000);
    cr_assert_eq(entry->memory.hung_count, 1, "another attempt");
    job_entry_note_reported(entry, &plan);
    cr_assert_eq(entry->memory.hung_count, 0);
    cr_assert_eq(entry->memory.hang_reported_attempt, 1);
}

Test(job_entry, a_pod_that_goes_without_being_deleted_has_vanished)
{
    SCOPED_FREE struct pod_record *plain = pod_of("first", 1, 2);
    struct pod_view view = pod_record_view(plain, &(struct pod_room){0}), ended, evaluator, failed, another;
    view.phase = POD_RUNNING;
    view.attempt = 1;
    ended = evaluator = failed = another = view;
    ended.exit_code = 1;
    evaluator.role = ROLE_EVALUATOR;
    failed.phase = POD_FAILED; /* by the controller that collects pods of lost nodes */
    another.job_uid = another.owner_uid = "another";
    cr_assert(vanishes(view, 5000));
    cr_assert_not(vanishes(ended, 6000), "it had ended by itself");
    cr_assert_not(vanishes(evaluator, 6000));
    cr_assert_not(vanishes(another, 6000));
    job_entry_note_deleting(entry, "first", &evaluator);
    cr_assert(vanishes(view, 7000));
    job_entry_note_deleting(entry, "first", &view);
    cr_assert_not(vanishes(view, 8000), "we have sent it away");
    cr_assert(vanishes(failed, 9000), "it was not we who ended it");
    view.attempt = 2;
    cr_assert(vanishes(view, 10000));
    job_entry_clock_set(entry, -3000, NULL);
    cr_assert_eq(entry->memory.vanished_ms, 7000);
    job_entry_set_job(entry, "second");
    cr_assert_eq(entry->memory.vanished_attempt, 0);
}

Test(job_entry, a_pod_that_an_earlier_operator_deleted_has_not_vanished)
{
    SCOPED_FREE struct pod_record *plain = pod_of("first", 1, 2);
    struct pod_view view = pod_record_view(plain, &(struct pod_room){0});
    const struct job_status status = {.incarnation = 2, .attempt = 2};
    view.phase = POD_RUNNING;
    view.attempt = 1;
    job_entry_see_lists(entry, 1, &status);
    cr_assert_not(vanishes(view, 5000), "its crew was told to end before the next attempt began");
    view.attempt = 2;
    cr_assert(vanishes(view, 6000));
    job_entry_set_job(entry, "second");
    cr_assert_eq(entry->deleted_attempt, 0);
}

static struct pod_record *pod_at(int64_t created_ms, int64_t deletion_ms)
{
    SCOPED_FREE struct pod_record *plain = pod_of("first", 0, 1);
    struct pod_view view = pod_record_view(plain, &(struct pod_room){0});
    view.created_ms = created_ms;
    view.deletion_ms = deletion_ms;
    return pod_record_new(&view);
}

Test(job_entry, times_of_pods_move_when_they_were_known_before)
{
    SCOPED_FREE struct pod_record *first = pod_at(5000, FIELD_UNSET), *deleted = pod_at(5000, 9000),
                                  *second = pod_at(8000, FIELD_UNSET), *later = pod_at(9500, FIELD_UNSET);
    struct arena arena = {0};
    job_entry_add_pod(entry, first);
    job_entry_add_pod(entry, second);
    cr_assert_eq(job_entry_views(entry, &arena)[0]->created_ms, 5000);
    job_entry_clock_set(entry, 1000, NULL);
    job_entry_add_pod(entry, later);
    job_entry_change_pod(entry, first, deleted);
    const struct pod_view **views = job_entry_views(entry, &arena);
    cr_assert_eq(views[0]->created_ms, 6000);
    cr_assert_eq(views[0]->deletion_ms, 9000, "seen since");
    cr_assert_eq(views[1]->created_ms, 9000);
    cr_assert_eq(views[2]->created_ms, 9500, "seen since");
    job_entry_clock_set(entry, -3000, NULL);
    job_entry_remove_pod(entry, second);
    views = job_entry_views(entry, &arena);
    cr_assert_eq(views[0]->created_ms, 3000);
    cr_assert_eq(views[0]->deletion_ms, 6000);
    cr_assert_eq(views[0]->finished_ms, FIELD_UNSET);
    cr_assert_eq(views[1]->created_ms, 6500);
    arena_release(&arena);
}

static struct pod_record *waiting_pod(const char *reason)
{
    SCOPED_FREE struct pod_record *plain = pod_at(5000, FIELD_UNSET);
    struct pod_view view = pod_record_view(plain, &(struct pod_room){0});
    view.waiting_reason = reason;
    return pod_record_new(&view);
}

static int64_t waits_since(size_t pod)
{
    struct arena arena = {0};
    int64_t ms = job_entry_views(entry, &arena)[pod]->waiting_ms;
    arena_release(&arena);
    return ms;
}

Test(job_entry, a_pod_waits_in_vain_until_the_kubelet_reports_otherwise)
{
    SCOPED_FREE struct pod_record *other = pod_at(5000, FIELD_UNSET), *fails = waiting_pod("ErrImagePull"),
                                  *backs_off = waiting_pod("ImagePullBackOff"),
                                  *starts = waiting_pod("ContainerCreating");
    job_entry_add_pod(entry, other);
    job_entry_note_wait(entry, other, 6000);
    job_entry_add_pod(entry, fails);
    cr_assert_eq(waits_since(1), FIELD_UNSET);
    job_entry_note_wait(entry, fails, 7000);
    cr_assert_eq(waits_since(0), FIELD_UNSET);
    cr_assert_eq(waits_since(1), 7000);
    job_entry_change_pod(entry, fails, backs_off);
    job_entry_note_wait(entry, backs_off, 9000);
    cr_assert_eq(waits_since(1), 7000, "still");
    job_entry_clock_set(entry, 100, NULL);
    job_entry_remove_pod(entry, other);
    cr_assert_eq(waits_since(0), 7100);
    job_entry_change_pod(entry, backs_off, starts);
    job_entry_note_wait(entry, starts, 10000);
    cr_assert_eq(waits_since(0), FIELD_UNSET);
    job_entry_change_pod(entry, starts, fails);
    job_entry_note_wait(entry, fails, 11000);
    cr_assert_eq(waits_since(0), 11000, "anew");
}

Test(job_entry, a_job_is_new_no_more_when_its_pods_may_have_come_and_gone_unseen)
{
    struct job_status blank = {0};
    entry->memory.born_ms = 5000;
    entry->born_lists = 1;
    job_entry_see_lists(entry, 2, &blank);
    cr_assert_eq(entry->memory.born_ms, 5000, "it has had none");
    own_write_note(&entry->pod_write, "17");
    entry->born_lists = 2;
    job_entry_see_lists(entry, 2, &blank);
    cr_assert_eq(entry->memory.born_ms, 5000);
    job_entry_see_lists(entry, 3, &blank);
    cr_assert_eq(entry->memory.born_ms, FIELD_UNSET);
}

Test(job_entry, an_incarnation_that_was_there_before_pods_were_listed_may_be_used_up)
{
    struct job_status status = {.incarnation = 4};
    job_entry_see_lists(entry, 1, &status);
    cr_assert_eq(entry->memory.inherited_incarnation, 4);
    status.incarnation = 5;
    job_entry_see_lists(entry, 1, &status);
    cr_assert_eq(entry->memory.inherited_incarnation, 4, "all that comes of the next one is seen");
    job_entry_see_lists(entry, 2, &status);
    cr_assert_eq(entry->memory.inherited_incarnation, 5, "until all pods are listed anew");
    job_entry_set_job(entry, "second");
    status.incarnation = 1;
    job_entry_see_lists(entry, 2, &status);
    cr_assert_eq(entry->memory.inherited_incarnation, 1, "of another job");
}

Test(job_entry, the_time_of_a_certificate_that_no_status_tells_yet_moves)
{
    entry->memory.certificate = (struct certificate_generation){.number = 1, .from_ms = 7000, .period_ms = 1000};
    job_entry_clock_set(entry, -3000, NULL);
    cr_assert_eq(entry->memory.certificate.from_ms, 4000);
    cr_assert_eq(entry->memory.certificate.period_ms, 1000);
}

Test(job_entry, an_adoption_that_is_refused_is_asked_for_ever_more_rarely)
{
    struct job_entry *fresh = job_entry_new("n/j");
    static const int64_t after_ms[] = {10000, 20000, 40000, 80000, 160000, 320000, 640000, 640000};
    for (size_t i = 0; i < sizeof after_ms / sizeof *after_ms; i++) {
        job_entry_refuse_adoption(fresh, "uid-1", i ? "still no" : "no", 1000);
        cr_assert_eq(fresh->memory.refused[0].retry_ms, 1000 + after_ms[i]);
    }
    cr_assert_eq(fresh->memory.refused_count, 1);
    cr_assert_str_eq(fresh->memory.refused[0].words, "still no");
    job_entry_clock_set(fresh, -500, NULL);
    cr_assert_eq(fresh->memory.refused[0].retry_ms, 640500);
    job_entry_free(fresh);
}

Test(job_entry, a_report_is_planned_again_until_it_is_written)
{
    struct plan plan = {.attempt = 1, .status.attempt = 1};
    job_entry_note_document(entry, &plan);
    cr_expect(entry->document_fresh, "the plan left it aside");
    cr_expect_not(entry->document_planned);
    entry->document_fresh = false;
    plan.took_progress = plan.write_status = true;
    job_entry_note_document(entry, &plan);
    job_entry_end_document(entry, &plan, true);
    cr_expect(entry->document_fresh);
    entry->document_fresh = false;
    job_entry_note_document(entry, &plan);
    job_entry_end_document(entry, &plan, false);
    cr_expect_not(entry->document_fresh);
    plan.status.attempt = 2;
    job_entry_note_document(entry, &plan);
    job_entry_end_document(entry, &plan, true);
    cr_expect_not(entry->document_fresh, "the next attempt makes its own progress");
}
