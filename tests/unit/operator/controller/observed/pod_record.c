/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/pod_record.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define JOB_UID "0b8f7f5e-54d1-4a55-a0a5-7d3c6c0d3c11"
#define POD_UID "7a6b1f00-0000-4a55-a0a5-ffffffffffff"

static struct pod_view member(const char *name, const char *uid, const char *job_name, const char *job_uid)
{
    SCOPED_JSON *nothing = json_new_object();
    SCOPED_BUFFER conditions;
    struct pod_view view;
    pod_view_read(nothing, &view, &conditions);
    view.conditions = "";
    view.name = name;
    view.uid = uid;
    view.job_name = job_name;
    view.job_uid = view.owner_uid = job_uid;
    view.ip = "10.0.0.7";
    view.node = "node-7";
    view.role = ROLE_WORKER;
    view.index = 3;
    view.incarnation = 7;
    view.created_ms = 1795183200000;
    view.member = true;
    return view;
}

static void expect_comes_back(const struct pod_view *view)
{
    SCOPED_FREE struct pod_record *record = pod_record_new(view);
    struct pod_room room;
    memset(&room, 0x5a, sizeof room);
    struct pod_view again = pod_record_view(record, &room);
    cr_expect_str_eq(again.name, view->name);
    cr_expect_str_eq(again.uid, view->uid);
    cr_expect_str_eq(again.job_name, view->job_name);
    cr_expect_str_eq(again.job_uid, view->job_uid);
    cr_expect_str_eq(again.owner_uid, view->owner_uid);
    cr_expect_str_eq(again.ip, view->ip);
    cr_expect_str_eq(again.node, view->node);
    cr_expect_eq(again.created_ms, view->created_ms);
}

Test(pod_record, names_and_uids_of_any_form_come_back)
{
    static char long_name[POD_PLACE_NAME_MAX + 20];
    memset(long_name, 'n', sizeof long_name - 1);
    const char *const names[] = {"digits-worker-3-7", "digits-worker-3-70",        "digits-worker-03-7", "", "x",
                                 long_name,           "digits-worker-3-7\xc3\xa9", "%s-worker-3-7"};
    const char *const uids[] = {POD_UID, JOB_UID, "", "u", "7A6B1F00-0000-4A55-A0A5-FFFFFFFFFFFF", long_name, "%n"};
    const char *const jobs[] = {"digits", "", long_name, "%s"};
    for (size_t name = 0; name < sizeof names / sizeof *names; name++)
        for (size_t uid = 0; uid < sizeof uids / sizeof *uids; uid++)
            for (size_t job = 0; job < sizeof jobs / sizeof *jobs; job++) {
                struct pod_view view = member(names[name], uids[uid], jobs[job], JOB_UID);
                expect_comes_back(&view);
                view.member = false;
                view.job_uid = uids[uid];
                expect_comes_back(&view);
                view.owner_uid = "another";
                expect_comes_back(&view);
            }
}

Test(pod_record, the_occupant_of_a_place_is_found_without_a_view)
{
    static const int64_t numbers[] = {0, 1, 3, 63, 64, 127, 8192, -1, FIELD_UNSET, INT64_MAX - 1};
    struct pod_view view = member("digits-worker-3-7", POD_UID, "digits", JOB_UID);
    view.current = true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        view.index = view.incarnation = view.attempt = numbers[i];
        SCOPED_FREE struct pod_record *record = pod_record_new(&view);
        for (size_t other = 0; other < sizeof numbers / sizeof *numbers; other++)
            cr_expect_eq(pod_record_holds(record, ROLE_WORKER, numbers[other]), other == i);
        cr_expect_not(pod_record_holds(record, ROLE_CHIEF, numbers[i]));
    }
    view.current = false;
    SCOPED_FREE struct pod_record *former = pod_record_new(&view);
    cr_expect_not(pod_record_holds(former, ROLE_WORKER, view.index));
    view.current = true;
    view.member = false;
    SCOPED_FREE struct pod_record *stranger = pod_record_new(&view);
    cr_expect_not(pod_record_holds(stranger, ROLE_WORKER, view.index));
}

Test(pod_record, views_of_several_have_their_own_texts)
{
    struct pod_view first = member("digits-worker-3-7", POD_UID, "digits", JOB_UID);
    struct pod_view second = member("digits-worker-4-7", JOB_UID, "digits", POD_UID);
    second.index = 4;
    SCOPED_FREE struct pod_record *one = pod_record_new(&first), *other = pod_record_new(&second);
    const struct pod_record *const records[] = {one, other};
    struct arena arena = {0};
    const struct pod_view **views = pod_record_views(records, 2, &arena);
    cr_expect_str_eq(views[0]->name, "digits-worker-3-7");
    cr_expect_str_eq(views[0]->uid, POD_UID);
    cr_expect_str_eq(views[1]->name, "digits-worker-4-7");
    cr_expect_str_eq(views[1]->uid, JOB_UID);
    cr_expect_str_eq(views[1]->job_uid, POD_UID);
    arena_release(&arena);
}

Test(pod_record, what_follows_from_its_place_takes_no_room)
{
    struct pod_view plain = member("digits-worker-3-7", POD_UID, "digits", JOB_UID);
    SCOPED_FREE struct pod_record *record = pod_record_new(&plain);
    cr_expect_leq(malloc_usable_size(record), 88);
}

Test(pod_record, long_words_are_cut_between_characters)
{
    static char words[POD_TEXT_MAX + 3];
    for (size_t i = 0; i + 3 < sizeof words; i += 3)
        memcpy(words + i, "\xe5\xad\x97", 3);
    struct pod_view view = member("digits-worker-3-7", POD_UID, "digits", JOB_UID);
    view.unschedulable = words;
    SCOPED_FREE struct pod_record *record = pod_record_new(&view);
    struct pod_room room;
    cr_assert_eq(strlen(pod_record_view(record, &room).unschedulable), POD_TEXT_MAX - POD_TEXT_MAX % 3);
}
