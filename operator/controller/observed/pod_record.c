/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/pod_record.h"

#include <stddef.h>
#include <string.h>

#include "common/memory.h"
#include "common/utf8.h"

static const size_t text_fields[] = {
#define TEXT(field) offsetof(struct pod_view, field)
    TEXT(name),           TEXT(uid),
    TEXT(job_name),       TEXT(job_uid),
    TEXT(owner_uid),      TEXT(ip),
    TEXT(reason),         TEXT(message),
    TEXT(end_reason),     TEXT(termination_message),
    TEXT(waiting_reason), TEXT(waiting_message),
    TEXT(memory_limit),   TEXT(unschedulable),
    TEXT(conditions),     TEXT(init_container),
    TEXT(node),           TEXT(container),
    TEXT(disrupted_by),   TEXT(avoided),
#undef TEXT
};
#define TEXT_FIELDS (sizeof text_fields / sizeof *text_fields)

enum {
    MEMBER = 1,
    CURRENT = 2,
    READY = 4,
    SCHEDULED = 8,
    DISRUPTION_TARGET = 16,
    OWNED_BY_JOB = 32,
    ADOPTABLE = 64,
    BEGUN = 128,
    FENCED = 256,
    PLACE_NAMES_IT = 512, /* it has the name of its place */
    UID_IN_BYTES = 1024,
    JOB_UID_IN_BYTES = 2048,
    GATED = 4096,
};

static const size_t number_fields[] = {
#define NUMBER(field) offsetof(struct pod_view, field)
    NUMBER(incarnation), NUMBER(attempt),     NUMBER(index),    NUMBER(created_ms),   NUMBER(started_ms),
    NUMBER(finished_ms), NUMBER(deletion_ms), NUMBER(grace_ms), NUMBER(startable_ms),
#undef NUMBER
};
#define NUMBER_FIELDS (sizeof number_fields / sizeof *number_fields)
#define NUMBER_BYTES_MAX 10 /* seven bits a byte, and FIELD_UNSET besides */

struct pod_record {
    int32_t exit_code;
    uint32_t present; /* a bit for each text that is not empty */
    uint16_t flags;
    uint8_t role : 4, phase : 4;
    char bytes[]; /* the numbers, the UIDs that are no texts, then those texts, one after the other */
};
_Static_assert(TEXT_FIELDS <= 32, "a bit for each text");
_Static_assert(ROLE_COUNT <= 16 && POD_FAILED < 16, "four bits for each");

static int64_t *number_field(struct pod_view *view, unsigned field)
{
    return (int64_t *)(void *)((char *)view + number_fields[field]);
}

static const char **text_field(struct pod_view *view, unsigned field)
{
    return (const char **)(void *)((char *)view + text_fields[field]);
}

/* The owner of one of the operator's own pods is the job, which the label names as well. */
static bool owner_is_job(const struct pod_view *view)
{
    return strcmp(view->owner_uid, view->job_uid) == 0;
}

static uint16_t flags_of(const struct pod_view *view)
{
    return (uint16_t)((view->member ? MEMBER : 0) | (view->current ? CURRENT : 0) | (view->ready ? READY : 0) |
                      (view->scheduled ? SCHEDULED : 0) | (view->disruption_target ? DISRUPTION_TARGET : 0) |
                      (owner_is_job(view) ? OWNED_BY_JOB : 0) | (view->adoptable ? ADOPTABLE : 0) |
                      (view->begun ? BEGUN : 0) | (view->fenced ? FENCED : 0) | (view->gated ? GATED : 0));
}

/* Small numbers of either sign take a byte, FIELD_UNSET too. */
static char *number_put(char *to, int64_t number)
{
    uint64_t code = number == FIELD_UNSET ? 0 : ((uint64_t)number << 1 ^ (uint64_t)(number >> 63)) + 1;
    for (; code >= 0x80; code >>= 7)
        *to++ = (char)(code | 0x80);
    *to++ = (char)code;
    return to;
}

static const char *number_take(const char *from, int64_t *ret_number)
{
    uint64_t code = 0;
    unsigned shift = 0;
    do
        code |= (uint64_t)(*from & 0x7f) << shift, shift += 7;
    while (*from++ & 0x80);
    *ret_number = code == 0 ? FIELD_UNSET : (int64_t)((code - 1) >> 1 ^ -((code - 1) & 1));
    return from;
}

/* Times are small numbers when told from the pod's creation on: `sign` -1 makes them so, 1 turns them back. */
static void times_shift(struct pod_view *view, int64_t sign)
{
    int64_t *const times[] = {&view->started_ms, &view->finished_ms, &view->deletion_ms, &view->startable_ms};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (*times[i] != FIELD_UNSET && view->created_ms != FIELD_UNSET)
            *times[i] += sign * view->created_ms;
}

/* A text that is put as bytes is left out of the texts. */
static char *uid_put(char *to, const char **uid, uint16_t flag, uint16_t *flags)
{
    if (!uid_bytes_parse(*uid, (unsigned char *)to))
        return to;
    *flags |= flag;
    *uid = "";
    return to + UID_BYTES;
}

static void leave_out_name(struct pod_view *view, uint16_t *flags)
{
    char name[POD_PLACE_NAME_MAX];
    if (!view->member || !pod_view_name_of_place(view, name) || strcmp(view->name, name) != 0)
        return;
    *flags |= PLACE_NAMES_IT;
    view->name = "";
}

/* Packs a view, with shifted times, into a record. */
static struct pod_record *record_of(struct pod_view *view, uint16_t flags)
{
    char head[NUMBER_FIELDS * NUMBER_BYTES_MAX + 2 * UID_BYTES], *end = head;
    size_t lengths[TEXT_FIELDS], text_bytes = 0;
    for (unsigned i = 0; i < NUMBER_FIELDS; i++)
        end = number_put(end, *number_field(view, i));
    leave_out_name(view, &flags);
    end = uid_put(end, &view->uid, UID_IN_BYTES, &flags);
    end = uid_put(end, &view->job_uid, JOB_UID_IN_BYTES, &flags);
    for (unsigned i = 0; i < TEXT_FIELDS; i++) {
        lengths[i] = utf8_fit(*text_field(view, i), POD_TEXT_MAX);
        text_bytes += lengths[i] > 0 ? lengths[i] + 1 : 0;
    }
    size_t head_bytes = (size_t)(end - head);
    struct pod_record *record = memory_allocate(1, offsetof(struct pod_record, bytes) + head_bytes + text_bytes);
    record->flags = flags;
    char *to = record->bytes;
    memcpy(to, head, head_bytes);
    to += head_bytes;
    for (unsigned i = 0; i < TEXT_FIELDS; i++) {
        if (lengths[i] == 0)
            continue;
        record->present |= 1U << i;
        memcpy(to, *text_field(view, i), lengths[i]);
        to += lengths[i] + 1;
    }
    return record;
}

struct pod_record *pod_record_new(const struct pod_view *given)
{
    struct pod_view view = *given;
    if (owner_is_job(given))
        view.owner_uid = "";
    times_shift(&view, -1);
    struct pod_record *record = record_of(&view, flags_of(given));
    record->exit_code = given->exit_code;
    record->role = given->role & 0xf;
    record->phase = given->phase & 0xf;
    return record;
}

struct pod_record *pod_record_read(const struct json *pod)
{
    struct pod_view view;
    SCOPED_BUFFER conditions;
    pod_view_read(pod, &view, &conditions);
    return pod_record_new(&view);
}

static const char *uid_take(const char *from, char room[UID_TEXT_MAX], const char **ret_uid)
{
    uid_bytes_print((const unsigned char *)from, room);
    *ret_uid = room;
    return from + UID_BYTES;
}

static void texts_take(const char *from, uint32_t present, struct pod_view *view)
{
    for (unsigned i = 0; i < TEXT_FIELDS; i++) {
        if (!(present & 1U << i))
            continue;
        *text_field(view, i) = from;
        from += strlen(from) + 1;
    }
}

bool pod_record_holds(const struct pod_record *record, enum role role, int64_t index)
{
    const char *from = record->bytes;
    int64_t number;
    unsigned field = 0;
    if (!(record->flags & MEMBER) || !(record->flags & CURRENT) || record->role != role)
        return false;
    do
        from = number_take(from, &number);
    while (number_fields[field++] != offsetof(struct pod_view, index));
    return number == index;
}

struct pod_view pod_record_view(const struct pod_record *record, struct pod_room *room)
{
    struct pod_view view = {
        .waiting_ms = FIELD_UNSET,
        .exit_code = record->exit_code,
        .role = (enum role)record->role,
        .phase = (enum pod_phase)record->phase,
        .member = record->flags & MEMBER,
        .current = record->flags & CURRENT,
        .ready = record->flags & READY,
        .scheduled = record->flags & SCHEDULED,
        .disruption_target = record->flags & DISRUPTION_TARGET,
        .adoptable = record->flags & ADOPTABLE,
        .begun = record->flags & BEGUN,
        .fenced = record->flags & FENCED,
        .gated = record->flags & GATED,
    };
    const char *from = record->bytes;
    for (unsigned i = 0; i < NUMBER_FIELDS; i++)
        from = number_take(from, number_field(&view, i));
    times_shift(&view, 1);
    for (unsigned i = 0; i < TEXT_FIELDS; i++)
        *text_field(&view, i) = "";
    if (record->flags & UID_IN_BYTES)
        from = uid_take(from, room->uid, &view.uid);
    if (record->flags & JOB_UID_IN_BYTES)
        from = uid_take(from, room->job_uid, &view.job_uid);
    texts_take(from, record->present, &view);
    if (record->flags & PLACE_NAMES_IT && pod_view_name_of_place(&view, room->name))
        view.name = room->name;
    if (record->flags & OWNED_BY_JOB)
        view.owner_uid = view.job_uid;
    return view;
}

const struct pod_view **pod_record_views(const struct pod_record *const *records, size_t count, struct arena *arena)
{
    struct pod_view *views = arena_allocate(arena, count, sizeof *views);
    struct pod_room *rooms = arena_allocate(arena, count, sizeof *rooms);
    const struct pod_view **list = arena_allocate(arena, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        views[i] = pod_record_view(records[i], &rooms[i]);
        list[i] = &views[i];
    }
    return list;
}
