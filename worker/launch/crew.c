/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch/crew.h"

#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/memory.h"
#include "worker/launch/tf_config.h"

#define HOST_MAX 512
#define ROLE_OF_CHIEF "chief"
#define ROLE_OF_WORKERS "worker"

static bool trains(const char *role)
{
    return strcmp(role, ROLE_OF_CHIEF) == 0 || strcmp(role, ROLE_OF_WORKERS) == 0;
}

/* Replaces {role} and {index}. */
static int expand_host(const char *pattern, const char *role, unsigned index, char **ret_host, struct error *error)
{
    SCOPED_BUFFER host;
    buffer_init(&host, HOST_MAX);
    for (const char *next = pattern; *next;) {
        int result;
        if (strncmp(next, "{role}", 6) == 0) {
            result = buffer_append_string(&host, role, error);
            next += 6;
        } else if (strncmp(next, "{index}", 7) == 0) {
            result = buffer_format(&host, "%u", index);
            next += 7;
        } else {
            result = buffer_append_byte(&host, *next++, error);
        }
        if (result < 0)
            return error_set(error, ERROR_INVALID, "crew.hostPattern gives a name of more than %d bytes", HOST_MAX);
    }
    *ret_host = buffer_take(&host);
    return 0;
}

static int add_seat(struct crew *crew, const char *role, unsigned index, char *host, int64_t port, struct error *error)
{
    if (crew->size == CREW_SIZE_MAX) {
        free(host);
        return error_set(error, ERROR_INVALID, "the crew has more than %d members", CREW_SIZE_MAX);
    }
    crew->seats = memory_resize(crew->seats, crew->size + 1, sizeof *crew->seats);
    crew->seats[crew->size++] =
        (struct crew_seat){.role = memory_copy_string(role), .index = index, .host = host, .port = (uint16_t)port};
    return 0;
}

static int add_role(struct crew *crew, const struct crew_spec *spec, const char *wanted, struct error *error)
{
    for (unsigned i = 0; i < spec->role_count; i++) {
        if (strcmp(spec->roles[i].name, wanted) != 0)
            continue;
        const struct crew_role *role = &spec->roles[i];
        bool elastic = role->min_count > 0 && role->max_count >= role->count;
        crew->least += (unsigned)(elastic ? role->min_count : role->count);
        crew->expected += (unsigned)role->count;
        for (unsigned index = 0; index < (elastic ? role->max_count : role->count); index++) {
            char *host = NULL;
            if (expand_host(spec->host_pattern, wanted, index, &host, error) < 0 ||
                add_seat(crew, wanted, index, host, spec->port, error) < 0)
                return -1;
        }
    }
    return 0;
}

static int add_from_tf_config(struct crew *crew, const struct tf_config *config, const char *wanted,
                              struct error *error)
{
    for (unsigned i = 0; i < config->task_count; i++)
        if (strcmp(config->tasks[i].role, wanted) == 0 &&
            add_seat(crew, wanted, config->tasks[i].index, memory_copy_string(config->tasks[i].host),
                     config->tasks[i].port, error) < 0)
            return -1;
    return 0;
}

static int find_rank(struct crew *crew, const char *role, int64_t index, struct error *error)
{
    for (unsigned i = 0; i < crew->size; i++)
        if (strcmp(crew->seats[i].role, role) == 0 && crew->seats[i].index == index) {
            crew->rank = i;
            return 0;
        }
    return error_set(error, ERROR_INVALID, "%s %lld is no member of the crew, which has %u training members", role,
                     (long long)index, crew->size);
}

static int read_job_crew(const struct crew_spec *spec, const struct identity *identity, struct crew *crew,
                         struct error *error)
{
    if (add_role(crew, spec, ROLE_OF_CHIEF, error) < 0 || add_role(crew, spec, ROLE_OF_WORKERS, error) < 0)
        return -1;
    return find_rank(crew, identity->role, identity->index, error);
}

static int read_tf_config(const struct identity *identity, struct crew *crew, struct error *error)
{
    struct tf_config config;
    if (tf_config_parse(identity->tf_config, strlen(identity->tf_config), &config, error) < 0)
        return -1;
    int result = 0;
    if (!trains(config.role))
        result = error_set(error, ERROR_UNSUPPORTED,
                           "TF_CONFIG gives this process the role %s; this worker trains as %s or %s", config.role,
                           ROLE_OF_CHIEF, ROLE_OF_WORKERS);
    else if (add_from_tf_config(crew, &config, ROLE_OF_CHIEF, error) < 0 ||
             add_from_tf_config(crew, &config, ROLE_OF_WORKERS, error) < 0)
        result = -1;
    else
        result = find_rank(crew, config.role, config.index, error);
    tf_config_release(&config);
    return result;
}

int crew_read(const struct job_document *job, const struct identity *identity, struct crew *ret_crew,
              struct error *error)
{
    struct crew crew = {0};
    int result;
    if (job->crew.role_count > 0)
        result = read_job_crew(&job->crew, identity, &crew, error);
    else if (identity->tf_config)
        result = read_tf_config(identity, &crew, error);
    else
        result = add_seat(&crew, ROLE_OF_WORKERS, 0, memory_copy_string("localhost"), 0, error);
    if (result < 0) {
        crew_release(&crew);
        return -1;
    }
    if (crew.expected == 0)
        crew.least = crew.expected = crew.size;
    *ret_crew = crew;
    return 0;
}

void crew_release(struct crew *crew)
{
    for (unsigned i = 0; i < crew->size; i++) {
        free((char *)crew->seats[i].role);
        free((char *)crew->seats[i].host);
    }
    free(crew->seats);
    *crew = (struct crew){0};
}

unsigned crew_members_here(const struct crew *crew, const struct identity *identity)
{
    const char *own = identity->pod_ip ? identity->pod_ip : crew->seats[crew->rank].host;
    bool loopback = strncmp(own, "127.", 4) == 0 || strcmp(own, "::1") == 0 || strcmp(own, "localhost") == 0;
    return loopback ? crew->expected : 1;
}
