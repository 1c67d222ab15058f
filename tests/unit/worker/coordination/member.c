/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole crews of forked processes, each with a loopback address of its own. Each trains a toy: a vector to which every step adds the sum
 * of all ranks' contributions, so that a lost or repeated step shows in the final bits. Shared memory has each process's progress; a
 * process stops where a test wants to act.
 */
#include "worker/coordination/member.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/contract/environment.h"
#include "common/contract/exit_code.h"
#include "tests/unit/forking.h"
#include "tests/unit/loopback.h"

#define RANKS_MAX 4
#define ELEMENTS 5000
#define STEPS 60
#define PORT 2222

/* Seen by all processes of a test. */
struct board {
    volatile int64_t step[RANKS_MAX];
    volatile int64_t pause_at[RANKS_MAX]; /* the process stops itself (SIGSTOP) before this step */
    volatile int64_t cut_at[RANKS_MAX];   /* it cuts its data connections before this step */
    volatile int64_t gate;                /* nobody takes this step, or a later one, before the test moves it */
    volatile bool pause_in_transfer[RANKS_MAX];
    volatile double digest[RANKS_MAX];
    volatile unsigned transfers[RANKS_MAX]; /* how often state was copied to it */
    volatile unsigned broken[RANKS_MAX];    /* how often a crew that had formed was none any more */
    char error[RANKS_MAX][512];
};

struct crew {
    unsigned size;
    struct board *board;
    pid_t children[RANKS_MAX];
    char hosts_path[64];
    char addresses[RANKS_MAX][LOOPBACK_HOST_MAX];
    unsigned next_address;
    enum collective_transport transport;
    int64_t death_ms, lost_ms;
    struct crew_seat seats[RANKS_MAX];
    char names[RANKS_MAX][32];
};

/* ---------------------------------------------------------------- the toy trainer */

struct toy {
    struct crew *crew;
    unsigned rank;
    struct member *member;
    struct endpoint *endpoint;
    struct collective *group;
    unsigned inputs;
    bool holds;
    struct {
        int64_t step;
        float weights[ELEMENTS];
    } state;
};

static void toy_combine(const void *context, const float *const *inputs, float *result, size_t elements)
{
    unsigned count = *(const unsigned *)context;
    for (size_t i = 0; i < elements; i++) {
        float sum = inputs[0][i];
        for (unsigned k = 1; k < count; k++)
            sum += inputs[k][i];
        result[i] = sum;
    }
}

static int toy_open(struct toy *toy, const struct world *world, struct error *error)
{
    struct collective_options options = {.endpoint = toy->endpoint,
                                         .job_uid = "uid-1",
                                         .generation = world->generation,
                                         .rank = world->rank,
                                         .size = world->size,
                                         .peers = world->peers,
                                         .transport = toy->crew->transport,
                                         .reduction = {.combine = toy_combine, .context = &toy->inputs}};
    for (unsigned i = 0; i < world->size; i++)
        options.reduction.contributions[i] = 1;
    if (collective_new(&options, &toy->group, error) < 0)
        return -1;
    member_guard(toy->member, toy->group);
    return collective_connect(toy->group, 20000, error);
}

static int toy_copy_state(struct toy *toy, const struct world *world, struct error *error)
{
    struct board *board = toy->crew->board;
    bool receives = world->receives[toy->rank];
    if (receives)
        toy->holds = false;
    if (receives && board->pause_in_transfer[toy->rank]) {
        board->pause_in_transfer[toy->rank] = false;
        raise(SIGSTOP);
    }
    if (collective_broadcast(toy->group, world->source_rank, world->receives, &toy->state, sizeof(toy->state), error) <
        0)
        return -1;
    toy->holds = true;
    if (receives)
        board->transfers[toy->rank]++;
    return 0;
}

static int toy_reform(struct toy *toy, struct error *error)
{
    if (toy->group != NULL) {
        member_guard(toy->member, NULL);
        collective_free(toy->group);
        toy->group = NULL;
    }
    struct member_standing standing = {.holds_state = toy->holds, .applied_step = toy->state.step};
    struct world world;
    if (member_agree(toy->member, &standing, &world, error) < 0)
        return -1;
    toy->inputs = world.size;
    return toy_open(toy, &world, error) < 0 ? -1 : toy_copy_state(toy, &world, error);
}

static int toy_step(struct toy *toy, struct error *error)
{
    static float vector[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        vector[i] = (float)(toy->rank + 1) * 0.37f + (float)((toy->state.step * 7919 + i) % 1009) * 1e-3f;
    if (collective_all_reduce(toy->group, (const float *const[]){vector}, vector, ELEMENTS, error) < 0)
        return -1;
    for (int i = 0; i < ELEMENTS; i++)
        toy->state.weights[i] = toy->state.weights[i] * 0.9f + vector[i];
    toy->state.step++;
    return 0;
}

/* Every TCP connection that has the port of some member's rpc server at neither end carries bulk data. */
static void cut_data_connections(void)
{
    for (int descriptor = 3; descriptor < 256; descriptor++) {
        struct sockaddr_in own, other;
        socklen_t own_size = sizeof(own), other_size = sizeof(other);
        if (getpeername(descriptor, (struct sockaddr *)&other, &other_size) == 0 &&
            getsockname(descriptor, (struct sockaddr *)&own, &own_size) == 0 && own.sin_family == AF_INET &&
            ntohs(own.sin_port) != PORT && ntohs(other.sin_port) != PORT)
            shutdown(descriptor, SHUT_RDWR);
    }
}

static int toy_run(struct toy *toy, struct error *error)
{
    struct board *board = toy->crew->board;
    bool formed = false;
    while (toy->state.step < STEPS || !formed) {
        if (formed && board->pause_at[toy->rank] == toy->state.step) {
            board->pause_at[toy->rank] = -1;
            raise(SIGSTOP);
        }
        if (formed && board->cut_at[toy->rank] == toy->state.step) {
            board->cut_at[toy->rank] = -1;
            cut_data_connections();
        }
        while (formed && toy->state.step >= board->gate && toy->state.step < STEPS)
            usleep(200);
        if ((formed ? toy_step(toy, error) : toy_reform(toy, error)) == 0) {
            formed = true;
        } else if (error->kind == ERROR_UNAVAILABLE) {
            board->broken[toy->rank] += formed;
            formed = false;
            error_clear(error);
        } else {
            return -1;
        }
        board->step[toy->rank] = toy->state.step;
        /* Nobody leaves before all are done. */
        if (toy->state.step == STEPS && formed && collective_barrier(toy->group, error) < 0) {
            formed = false;
            error_clear(error);
        }
    }
    return 0;
}

static int exit_code_of(const struct error *error)
{
    switch (error->kind) {
    case ERROR_STALE:
        return EXIT_CODE_SUPERSEDED;
    case ERROR_TIMEOUT:
        return EXIT_CODE_LOST_CREW;
    case ERROR_INVALID:
        return EXIT_CODE_BAD_JOB;
    default:
        return EXIT_CODE_INTERNAL;
    }
}

static int toy_start(struct toy *toy, uint32_t incarnation, const char *job_uid, struct error *error)
{
    struct crew *crew = toy->crew;
    if (endpoint_open(crew->addresses[toy->rank], 0, &toy->endpoint, error) < 0)
        return -1;
    return member_start(&(struct member_options){.job_uid = job_uid,
                                                 .attempt = 1,
                                                 .incarnation = incarnation,
                                                 .rank = toy->rank,
                                                 .size = crew->size,
                                                 .seats = crew->seats,
                                                 .listen_address = crew->addresses[toy->rank],
                                                 .data_port = endpoint_port(toy->endpoint),
                                                 .logical_shards = crew->size,
                                                 .beat_ms = 50,
                                                 .suspicion_ms = crew->death_ms / 2,
                                                 .death_ms = crew->death_ms,
                                                 .lost_ms = crew->lost_ms},
                        &toy->member, error);
}

static _Noreturn void toy_main(struct crew *crew, unsigned rank, uint32_t incarnation, const char *job_uid)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when a failed test leaves it frozen */
    static struct toy toy;
    struct error error = ERROR_INIT;
    toy.crew = crew;
    toy.rank = rank;
    if (toy_start(&toy, incarnation, job_uid, &error) < 0 || toy_run(&toy, &error) < 0) {
        memcpy(crew->board->error[rank], error.message, sizeof(crew->board->error[rank]) - 1);
        _exit(exit_code_of(&error));
    }
    /* A new chief has nothing of its own: state comes to it, or it starts from zero. */
    double digest = 0;
    for (int i = 0; i < ELEMENTS; i++)
        digest += (double)toy.state.weights[i] * (i + 1);
    crew->board->digest[rank] = digest;
    member_guard(toy.member, NULL);
    collective_free(toy.group);
    member_leave(toy.member);
    member_free(toy.member);
    endpoint_free(toy.endpoint);
    _exit(0);
}

/* ---------------------------------------------------------------- the test's side */

/* Every process has an address of its own, also a replacement; the hosts file says which is current. */
static void crew_publish(struct crew *crew)
{
    FILE *file = fopen(crew->hosts_path, "we");
    for (unsigned rank = 0; rank < crew->size; rank++)
        fprintf(file, "%s toy-%u toy-%u.crew.svc\n", crew->addresses[rank], rank, rank);
    fclose(file);
}

static void crew_new_address(struct crew *crew, unsigned rank)
{
    loopback_host(crew->addresses[rank], crew->next_address++);
    crew_publish(crew);
}

static void crew_init(struct crew *crew, unsigned size)
{
    SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED();
    memset(crew, 0, sizeof(*crew));
    crew->size = size;
    crew->death_ms = 5000;
    crew->lost_ms = 60000; /* a successor may take its time in starting */
    crew->board = mmap(NULL, sizeof(*crew->board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(crew->hosts_path, sizeof(crew->hosts_path), "/tmp/coxswain-hosts-XXXXXX");
    close(mkstemp(crew->hosts_path));
    setenv(ENV_HOSTS_FILE, crew->hosts_path, 1);
    crew->board->gate = STEPS;
    for (unsigned rank = 0; rank < size; rank++) {
        crew->board->pause_at[rank] = -1;
        crew->board->cut_at[rank] = -1;
        snprintf(crew->names[rank], sizeof(crew->names[rank]), "toy-%u.crew.svc", rank);
        crew->seats[rank] = (struct crew_seat){"worker", rank, crew->names[rank], PORT};
        crew_new_address(crew, rank);
    }
}

static void crew_start(struct crew *crew, unsigned rank, uint32_t incarnation)
{
    crew->children[rank] = fork();
    if (crew->children[rank] == 0)
        toy_main(crew, rank, incarnation, "uid-1");
}

static void crew_start_all(struct crew *crew)
{
    for (unsigned rank = crew->size; rank-- > 0;)
        crew_start(crew, rank, 1);
}

static int crew_wait(struct crew *crew, unsigned rank)
{
    int status = 0;
    waitpid(crew->children[rank], &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Until the process has stopped itself. */
static void crew_await(struct crew *crew, unsigned rank)
{
    int status = 0;
    cr_assert_eq(waitpid(crew->children[rank], &status, WUNTRACED), crew->children[rank]);
    cr_assert(WIFSTOPPED(status), "rank %u ended: %s", rank, crew->board->error[rank]);
}

static double undisturbed_digest(unsigned size)
{
    static float weights[ELEMENTS];
    memset(weights, 0, sizeof(weights));
    for (int64_t step = 0; step < STEPS; step++) {
        for (int i = 0; i < ELEMENTS; i++) {
            float sum = 0;
            for (unsigned rank = 0; rank < size; rank++) {
                float value = (float)(rank + 1) * 0.37f + (float)((step * 7919 + i) % 1009) * 1e-3f;
                sum = rank == 0 ? value : sum + value;
            }
            weights[i] = weights[i] * 0.9f + sum;
        }
    }
    double digest = 0;
    for (int i = 0; i < ELEMENTS; i++)
        digest += (double)weights[i] * (i + 1);
    return digest;
}

static void crew_expect_success(struct crew *crew)
{
    for (unsigned rank = 0; rank < crew->size; rank++) {
        cr_assert_eq(crew_wait(crew, rank), 0, "rank %u: %s", rank, crew->board->error[rank]);
        cr_assert_eq(crew->board->step[rank], STEPS);
    }
    for (unsigned rank = 0; rank < crew->size; rank++)
        cr_assert_eq(crew->board->digest[rank], undisturbed_digest(crew->size), "rank %u has other bits", rank);
    unlink(crew->hosts_path);
}

static void kill_and_replace(struct crew *crew, unsigned rank, uint32_t incarnation)
{
    kill(crew->children[rank], SIGKILL);
    crew_wait(crew, rank);
    crew_new_address(crew, rank);
    crew_start(crew, rank, incarnation);
}

Test(member, a_crew_forms_trains_and_ends, .timeout = 120)
{
    struct crew crew;
    crew_init(&crew, 3);
    crew_start_all(&crew);
    crew_expect_success(&crew);
}

static void kill_mid_run(unsigned size, unsigned victim, enum collective_transport transport)
{
    struct crew crew;
    crew_init(&crew, size);
    crew.transport = transport;
    crew.board->pause_at[victim] = STEPS / 2;
    crew_start_all(&crew);
    crew_await(&crew, victim); /* it is about to stop; the others wait for it in their collective */
    kill_and_replace(&crew, victim, 2);
    crew_expect_success(&crew);
    cr_assert_geq(crew.board->transfers[victim], 1);
}

Test(member, a_killed_worker_is_replaced_and_no_step_is_lost, .timeout = 120)
{
    kill_mid_run(2, 1, COLLECTIVE_TRANSPORT_AUTO);
    kill_mid_run(3, 1, COLLECTIVE_TRANSPORT_TCP);
}

Test(member, a_killed_chief_is_replaced_and_takes_the_survivors_state, .timeout = 120)
{
    kill_mid_run(2, 0, COLLECTIVE_TRANSPORT_AUTO);
    kill_mid_run(3, 0, COLLECTIVE_TRANSPORT_TCP);
}

Test(member, a_kill_before_the_crew_is_whole_harms_nobody, .timeout = 120)
{
    struct crew crew;
    crew_init(&crew, 3);
    crew_start(&crew, 0, 1);
    crew_start(&crew, 1, 1);
    kill_and_replace(&crew, 1, 2);
    kill_and_replace(&crew, 0, 3);
    crew_start(&crew, 2, 1);
    crew_expect_success(&crew);
}

Test(member, kills_at_any_moment_leave_the_same_bits, .timeout = 120)
{
    struct crew crew;
    crew_init(&crew, 3);
    crew.board->gate = 5;
    crew_start_all(&crew);
    uint32_t incarnation = 1;
    const int64_t apart = 7;
    for (int64_t at = 5; at + apart < STEPS; at += apart) {
        unsigned victim = (unsigned)(at % 3), watched = (victim + 1) % 3;
        while (crew.board->step[watched] < at)
            usleep(200);
        crew.board->gate = at + apart; /* before the crew's end, however late the kill comes */
        kill_and_replace(&crew, victim, ++incarnation);
    }
    crew.board->gate = STEPS;
    crew_expect_success(&crew);
}

static void cut_and_go_on(enum collective_transport transport)
{
    struct crew crew;
    crew_init(&crew, 3);
    crew.transport = transport;
    crew.board->cut_at[1] = 10;
    crew.board->cut_at[0] = 30;
    crew_start_all(&crew);
    crew_expect_success(&crew); /* nobody was replaced */
}

Test(member, cut_connections_between_the_living_are_made_anew, .timeout = 120)
{
    cut_and_go_on(COLLECTIVE_TRANSPORT_TCP);
    cut_and_go_on(COLLECTIVE_TRANSPORT_AUTO);
}

Test(member, a_newcomer_killed_while_it_receives_state_is_replaced_again, .timeout = 120)
{
    struct crew crew;
    crew_init(&crew, 3);
    crew.board->pause_at[2] = 20;
    crew_start_all(&crew);
    crew_await(&crew, 2);
    crew.board->pause_in_transfer[2] = true;
    kill_and_replace(&crew, 2, 2);
    crew_await(&crew, 2);
    kill_and_replace(&crew, 2, 3);
    crew_expect_success(&crew);
}

Test(member, a_frozen_worker_is_replaced_and_finds_itself_superseded, .timeout = 120)
{
    struct crew crew;
    crew_init(&crew, 3);
    crew.death_ms = 600;
    crew.board->pause_at[1] = 20;
    crew.board->gate = 40;
    crew_start_all(&crew);
    crew_await(&crew, 1);
    pid_t frozen = crew.children[1];
    crew_new_address(&crew, 1);
    crew_start(&crew, 1, 2);
    pid_t successor = crew.children[1];
    while (crew.board->step[0] < 40)
        usleep(1000);
    kill(frozen, SIGCONT); /* while there is a chief to ask */
    crew.children[1] = frozen;
    cr_assert_eq(crew_wait(&crew, 1), EXIT_CODE_SUPERSEDED, "%s", crew.board->error[1]);
    crew.children[1] = successor;
    crew.board->gate = STEPS;
    crew_expect_success(&crew);
}

Test(member, a_frozen_worker_without_a_successor_is_declared_dead, .timeout = 120)
{
    struct crew crew;
    crew_init(&crew, 2);
    crew.death_ms = 600;
    crew.board->pause_at[1] = 20;
    crew_start_all(&crew);
    crew_await(&crew, 1);
    pid_t frozen = crew.children[1];
    while (crew.board->broken[0] == 0) /* the chief has counted it among the dead */
        usleep(1000);
    kill(frozen, SIGCONT);
    cr_assert_eq(crew_wait(&crew, 1), EXIT_CODE_SUPERSEDED, "%s", crew.board->error[1]);
    crew_new_address(&crew, 1);
    crew_start(&crew, 1, 2);
    crew_expect_success(&crew);
}

Test(member, a_lower_incarnation_is_superseded_at_the_door, .timeout = 120)
{
    struct crew crew;
    crew_init(&crew, 3);
    crew_start(&crew, 0, 5);
    crew_start(&crew, 1, 7);
    crew_start(&crew, 2, 5);
    crew_expect_success(&crew);
    crew_init(&crew, 3);
    crew.board->pause_at[1] = 20;
    crew_start(&crew, 0, 5);
    crew_start(&crew, 1, 7);
    crew_start(&crew, 2, 5);
    crew_await(&crew, 1);
    struct crew older = crew;
    crew_new_address(&older, 1);
    crew_start(&older, 1, 6);
    cr_assert_eq(crew_wait(&older, 1), EXIT_CODE_SUPERSEDED, "%s", crew.board->error[1]);
    cr_assert_not_null(strstr(crew.board->error[1], "worker 1"));
    kill(crew.children[1], SIGCONT);
    crew_expect_success(&crew);
}

Test(member, without_a_chief_the_crew_is_lost_after_its_deadline, .timeout = 120)
{
    struct crew crew;
    crew_init(&crew, 2);
    crew.lost_ms = 2000;
    crew_start(&crew, 1, 1);
    cr_assert_eq(crew_wait(&crew, 1), EXIT_CODE_LOST_CREW);
    cr_assert_not_null(strstr(crew.board->error[1], "worker 0"), "%s", crew.board->error[1]);
    unlink(crew.hosts_path);
}

Test(member, a_frozen_chief_is_named, .timeout = 120)
{
    struct crew crew;
    crew_init(&crew, 2);
    crew.death_ms = 600;
    crew.lost_ms = 2000;
    crew.board->pause_at[0] = 20;
    crew_start_all(&crew);
    crew_await(&crew, 0);
    cr_assert_eq(crew_wait(&crew, 1), EXIT_CODE_LOST_CREW);
    const char *words = crew.board->error[1];
    cr_expect(strstr(words, "worker 0 (toy-0.crew.svc:") && strstr(words, "the chief is silent"), "%s", words);
    kill(crew.children[0], SIGKILL);
    crew_wait(&crew, 0);
    unlink(crew.hosts_path);
}

static void send_garbage(const char *host, uint16_t port)
{
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, host, &address.sin_addr);
    char noise[512];
    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (char)(i * 37);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof(address)) == 0)
        (void)!send(descriptor, noise, sizeof(noise), MSG_NOSIGNAL);
    close(descriptor);
}

Test(member, garbage_at_the_rpc_port_disturbs_nobody, .timeout = 120)
{
    struct crew crew;
    crew_init(&crew, 2);
    crew.board->pause_at[1] = 10;
    crew_start_all(&crew);
    crew_await(&crew, 1);
    for (unsigned i = 0; i < 20; i++)
        for (unsigned rank = 0; rank < 2; rank++)
            send_garbage(crew.addresses[rank], PORT);
    kill(crew.children[1], SIGCONT);
    crew_expect_success(&crew);
}

Test(member, a_leftover_of_another_job_is_waited_out, .timeout = 120)
{
    struct crew crew;
    crew_init(&crew, 2);
    pid_t leftover = fork();
    if (leftover == 0)
        toy_main(&crew, 0, 1, "uid-0");
    crew_start(&crew, 1, 1);
    usleep(300 * 1000); /* time for the newcomer to meet it; nothing breaks when it does not */
    kill(leftover, SIGKILL);
    waitpid(leftover, NULL, 0);
    crew_start(&crew, 0, 1);
    crew_expect_success(&crew);
}
