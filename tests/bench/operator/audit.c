/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums up the audit log of a kube-apiserver for `make bench-operator`.
 *
 *   operator-audit FILE OFFSET NAMESPACE
 *
 * reads FILE from OFFSET on and prints, for the writes in NAMESPACE that are done, a line for each user, verb, resource
 * (with its subresource), first part of the object's name and status code:
 *
 *   USER VERB RESOURCE NAME CODE COUNT FIRST LAST
 *
 * FIRST and LAST are when the first came and the last was answered, in seconds since 1970. Fields have no spaces.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/memory.h"

#define LINE_MAX_BYTES (1024 * 1024)
#define GROUPS_MAX 256

struct group {
    char *key;
    unsigned long count;
    double first, last;
};

static struct group groups[GROUPS_MAX];
static size_t group_count;

/* "2026-01-02T03:04:05.678901Z"; the project's clock reads milliseconds. */
static double seconds_of(const char *text)
{
    int64_t ms;
    return clock_parse(text, &ms) ? (double)ms / 1000 : 0;
}

static struct group *group_of(const char *key)
{
    for (size_t i = 0; i < group_count; i++)
        if (strcmp(groups[i].key, key) == 0)
            return &groups[i];
    if (group_count == GROUPS_MAX)
        return NULL;
    groups[group_count] = (struct group){.key = memory_copy_string(key), .first = 1e18};
    return &groups[group_count++];
}

/* "system:serviceaccount:coxswain-system:coxswain-operator" is coxswain-operator. */
static const char *last_part(const char *user)
{
    const char *colon = strrchr(user, ':');
    return colon ? colon + 1 : user;
}

static void take(const struct json *event, const char *name_space)
{
    const struct json *object = json_member(event, "objectRef");
    if (strcmp(json_string_at(object, "namespace", ""), name_space) != 0)
        return;
    const char *name = json_string_at(object, "name", ""), *subresource = json_string_at(object, "subresource", "");
    size_t first_part = strcspn(name, "-.");
    SCOPED_FREE char *key =
        memory_format("%s %s %s%s%s %.*s %lld", last_part(json_string_at(event, "user.username", "?")),
                      json_string_at(event, "verb", "?"), json_string_at(object, "resource", "?"),
                      *subresource ? "/" : "", subresource, first_part ? (int)first_part : 1, first_part ? name : "-",
                      (long long)json_integer_at(event, "responseStatus.code", 0));
    struct group *group = group_of(key);
    if (!group)
        return;
    double first = seconds_of(json_string_at(event, "requestReceivedTimestamp", "")),
           last = seconds_of(json_string_at(event, "stageTimestamp", ""));
    group->count++;
    group->first = first < group->first ? first : group->first;
    group->last = last > group->last ? last : group->last;
}

static int read_log(FILE *file, const char *name_space, struct error *error)
{
    SCOPED_FREE char *line = NULL;
    size_t capacity = 0;
    for (ssize_t length; (length = getline(&line, &capacity, file)) > 0;) {
        if (line[length - 1] != '\n')
            break; /* still being written */
        SCOPED_JSON *event = NULL;
        if (json_parse(line, (size_t)length, LINE_MAX_BYTES, &event, error) < 0)
            return -1;
        take(event, name_space);
    }
    return 0;
}

int main(int count, char **arguments)
{
    struct error error = ERROR_INIT;
    FILE *file = count == 4 ? fopen(arguments[1], "r") : NULL;
    if (!file || fseek(file, strtol(arguments[2], NULL, 10), SEEK_SET) != 0) {
        fprintf(stderr, "operator-audit FILE OFFSET NAMESPACE\n");
        return 2;
    }
    int result = read_log(file, arguments[3], &error);
    fclose(file);
    if (result < 0) {
        fprintf(stderr, "operator-audit: %s\n", error.message);
        return 1;
    }
    for (size_t i = 0; i < group_count; i++) {
        printf("%s %lu %.3f %.3f\n", groups[i].key, groups[i].count, groups[i].first, groups[i].last);
        free(groups[i].key);
    }
    return 0;
}
