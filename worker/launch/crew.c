/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch/crew.h"

#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/memory.h"
#include "worker/launch/tf_config.h"

_Static_assert(TRAINERS_MAX == CREW_SIZE_MAX, "a job that is let in has a crew that can be formed");

#define HOST_MAX 512
#define ROLE_OF_CHIEF "chief"
#define ROLE_OF_WORKERS "worker"
#define ROLE_OF_SERVERS "ps"
#define ROLE_OF_EVALUATORS "evaluator"

static bool trains(const char *role)
{
    return strcmp(role, ROLE_OF_CHIEF) == 0 || strcmp(role, ROLE_OF_WORKERS) == 0;
}

/* Replaces {role} and {index}. */
static int expand_host(const char *pattern, const char *role, unsigned index, char **ret_host, struct error *error)
{
    SCOPED_BUFFER host = BUFFER_INIT(HOST_MAX);
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

/* A list of seats that grows. */
struct seat_list {
    struct crew_seat **seats;
    unsigned *size;
    unsigned most;
    const char *what; /* the seats are of, in the plural */
};

static int add_seat(struct seat_list list, const char *role, unsigned index, char *host, int64_t port,
                    struct error *error)
{
    if (*list.size == list.most) {
        free(host);
        return error_set(error, ERROR_INVALID, "the crew has more than %u %s", list.most, list.what);
    }
    *list.seats = memory_resize(*list.seats, *list.size + 1, sizeof **list.seats);
    (*list.seats)[(*list.size)++] =
        (struct crew_seat){.role = memory_copy_string(role), .index = index, .host = host, .port = (uint16_t)port};
    return 0;
}

/* Which list a role's seats go to; none for roles that this crew has no use for. */
static bool list_of_role(struct crew *crew, const char *role, struct seat_list *ret_list, enum crew_part *ret_part)
{
    if (trains(role)) {
        *ret_list = (struct seat_list){&crew->seats, &crew->size, CREW_SIZE_MAX, "members"};
        *ret_part = CREW_TRAINS;
    } else if (strcmp(role, ROLE_OF_SERVERS) == 0) {
        *ret_list = (struct seat_list){&crew->servers, &crew->server_count, CREW_SERVERS_MAX, "servers"};
        *ret_part = CREW_SERVES;
    } else if (strcmp(role, ROLE_OF_EVALUATORS) == 0) {
        *ret_list = (struct seat_list){&crew->evaluators, &crew->evaluator_count, CREW_SIZE_MAX, "evaluators"};
        *ret_part = CREW_EVALUATES;
    } else {
        return false;
    }
    return true;
}

static int add_role(struct crew *crew, const struct crew_spec *spec, const char *wanted, struct error *error)
{
    struct seat_list list;
    enum crew_part part;
    if (!list_of_role(crew, wanted, &list, &part))
        return 0;
    for (unsigned i = 0; i < spec->role_count; i++) {
        if (strcmp(spec->roles[i].name, wanted) != 0)
            continue;
        const struct crew_role *role = &spec->roles[i];
        bool elastic = role->min_count > 0 && role->max_count >= role->count;
        if (part == CREW_TRAINS) {
            crew->least += (unsigned)(elastic ? role->min_count : role->count);
            crew->expected += (unsigned)role->count;
        }
        for (unsigned index = 0; index < (elastic ? role->max_count : role->count); index++) {
            char *host = NULL;
            if (expand_host(spec->host_pattern, wanted, index, &host, error) < 0 ||
                add_seat(list, wanted, index, host, spec->port, error) < 0)
                return -1;
        }
    }
    return 0;
}

static int add_from_tf_config(struct crew *crew, const struct tf_config *config, const char *wanted,
                              struct error *error)
{
    struct seat_list list;
    enum crew_part part;
    if (!list_of_role(crew, wanted, &list, &part))
        return 0;
    for (unsigned i = 0; i < config->task_count; i++)
        if (strcmp(config->tasks[i].role, wanted) == 0 &&
            add_seat(list, wanted, config->tasks[i].index, memory_copy_string(config->tasks[i].host),
                     config->tasks[i].port, error) < 0)
            return -1;
    return 0;
}

static int find_rank(struct crew *crew, const char *role, int64_t index, struct error *error)
{
    struct seat_list list = {.seats = &crew->seats, .size = &crew->size};
    unsigned of_role = 0;
    list_of_role(crew, role, &list, &crew->part);
    for (unsigned i = 0; i < *list.size; i++) {
        if (strcmp((*list.seats)[i].role, role) != 0)
            continue;
        of_role++;
        if ((*list.seats)[i].index == index) {
            crew->rank = i;
            return 0;
        }
    }
    return error_set(error, ERROR_INVALID, "%s %lld is no member of the crew, which has %u of role %s", role,
                     (long long)index, of_role, role);
}

/* Only a ParameterServer crew has members that do not train. */
static const char *const roles_of_all[] = {ROLE_OF_CHIEF, ROLE_OF_WORKERS, NULL};
static const char *const roles_of_parameter_server[] = {ROLE_OF_CHIEF, ROLE_OF_WORKERS, ROLE_OF_SERVERS,
                                                        ROLE_OF_EVALUATORS, NULL};

static int read_job_crew(const struct crew_spec *spec, const struct identity *identity, const char *const *roles,
                         struct crew *crew, struct error *error)
{
    for (; *roles; roles++)
        if (add_role(crew, spec, *roles, error) < 0)
            return -1;
    return find_rank(crew, identity->role, identity->index, error);
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static int read_tf_config(const struct identity *identity, const char *const *roles, struct crew *crew,
                          struct error *error)
{
    struct tf_config config;
    if (tf_config_parse(identity->tf_config, strlen(identity->tf_config), &config, error) < 0)
        return -1;
    int result = 0;
    if (!is_one_of(config.role, roles))
        result = error_set(error, ERROR_UNSUPPORTED,
                           "TF_CONFIG gives this process the role %s; this worker trains as %s or %s", config.role,
                           ROLE_OF_CHIEF, ROLE_OF_WORKERS);
    for (; *roles && result == 0; roles++)
        result = add_from_tf_config(crew, &config, *roles, error);
    if (result == 0)
        result = find_rank(crew, config.role, config.index, error);
    tf_config_release(&config);
    return result;
}

int crew_read(const struct job_document *job, const struct identity *identity, struct crew *ret_crew,
              struct error *error)
{
    struct crew crew = {0};
    const char *const *roles =
        job->strategy.type == STRATEGY_PARAMETER_SERVER ? roles_of_parameter_server : roles_of_all;
    int result;
    if (job->crew.role_count > 0)
        result = read_job_crew(&job->crew, identity, roles, &crew, error);
    else if (identity->tf_config)
        result = read_tf_config(identity, roles, &crew, error);
    else
        result = add_seat((struct seat_list){&crew.seats, &crew.size, CREW_SIZE_MAX, "members"}, ROLE_OF_WORKERS, 0,
                          memory_copy_string("localhost"), 0, error);
    if (result < 0) {
        crew_release(&crew);
        return -1;
    }
    if (crew.expected == 0)
        crew.least = crew.expected = crew.size;
    *ret_crew = crew;
    return 0;
}

static void release_seats(struct crew_seat *seats, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        free((char *)seats[i].role);
        free((char *)seats[i].host);
    }
    free(seats);
}

void crew_release(struct crew *crew)
{
    release_seats(crew->seats, crew->size);
    release_seats(crew->servers, crew->server_count);
    release_seats(crew->evaluators, crew->evaluator_count);
    *crew = (struct crew){0};
}

const struct crew_seat *crew_own_seat(const struct crew *crew)
{
    const struct crew_seat *const lists[] = {
        [CREW_TRAINS] = crew->seats, [CREW_SERVES] = crew->servers, [CREW_EVALUATES] = crew->evaluators};
    return &lists[crew->part][crew->rank];
}

bool crew_has_own_chief(const struct crew *crew)
{
    return strcmp(crew->seats[0].role, ROLE_OF_CHIEF) == 0;
}

struct crew_seat crew_name_seat(const struct crew *crew, unsigned seat)
{
    if (seat < crew->size)
        return crew->seats[seat];
    return (struct crew_seat){.role = ROLE_OF_WORKERS, .index = seat - crew_has_own_chief(crew)};
}

unsigned crew_members_here(const struct crew *crew, const struct identity *identity)
{
    const char *own = identity->pod_ip ? identity->pod_ip : crew_own_seat(crew)->host;
    bool loopback = strncmp(own, "127.", 4) == 0 || strcmp(own, "::1") == 0 || strcmp(own, "localhost") == 0;
    return loopback ? crew->expected + crew->server_count + crew->evaluator_count : 1;
}
