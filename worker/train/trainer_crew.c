/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/trainer_stages.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "common/contract/environment.h"
#include "worker/comm/crew_certificates.h"
#include "worker/comm/crew_hello.h"
#include "worker/comm/crew_key.h"
#include "worker/strategy/peer_hub.h"
#include "worker/train/support.h"

int trainer_open_crew(struct trainer *trainer, struct error *error)
{
    if (crew_read(trainer->job, trainer->identity, &trainer->crew, error) < 0)
        return -1;
    return support_check(trainer->job, &trainer->crew, error);
}

static bool is_address(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Where this member listens: its pod's address; by hand its seat's, when that is numeric; else everywhere. */
const char *trainer_listen_address(const struct trainer *trainer)
{
    const char *host = crew_own_seat(&trainer->crew)->host;
    if (trainer->identity->pod_ip)
        return trainer->identity->pod_ip;
    return is_address(host) ? host : NULL;
}

/* Loads the key of the crew, and sets which pod this process says it is. */
int trainer_open_key(struct trainer *trainer, struct error *error)
{
    const struct identity *identity = trainer->identity;
    const struct crew_seat *seat = crew_own_seat(&trainer->crew);
    struct pod_identity own = {
        .index = seat->index, .attempt = (uint32_t)identity->attempt, .incarnation = (uint32_t)identity->incarnation};
    snprintf(own.role, sizeof own.role, "%s", seat->role);
    snprintf(own.job_uid, sizeof own.job_uid, "%s", identity->job_uid);
    pod_identity_set_own(&own);
    return identity->crew_key_file ? crew_key_load(identity->crew_key_file, error) : 0;
}

int trainer_open_certificates(struct trainer *trainer, struct error *error)
{
    const char *directory = trainer->identity->crew_tls_directory;
    return directory ? crew_certificates_open(directory, error) : 0;
}

/* Opens the port for other members' bulk data. */
static int open_data_plane(struct trainer *trainer, const char *address, uint16_t *ret_port, struct error *error)
{
    if (trainer->job->strategy.type != STRATEGY_PEER_TO_PEER) {
        if (endpoint_open(address, PORT_COLLECTIVE, &trainer->endpoint, error) < 0 ||
            endpoint_start(trainer->endpoint, error) < 0)
            return -1;
        *ret_port = endpoint_port(trainer->endpoint);
        return 0;
    }
    const struct peer_hub_options options = {
        .job_uid = trainer->identity->job_uid,
        .attempt = (uint32_t)trainer->identity->attempt,
        .incarnation = (uint32_t)trainer->identity->incarnation,
        .seat = trainer->crew.rank,
        .listen_address = address,
        .port = PORT_COLLECTIVE,
    };
    if (peer_hub_open(&options, &trainer->hub, error) < 0)
        return -1;
    *ret_port = peer_hub_port(trainer->hub);
    return 0;
}

/* Peers that go at their own pace need not compute alike, nor does a crew that promises the same bits to none but itself. */
static bool computes_alike(const struct trainer *trainer)
{
    return trainer->job->strategy.type != STRATEGY_PEER_TO_PEER && !trainer_serves_parameters(trainer) &&
           trainer->job->training.determinism == DETERMINISM_CREW;
}

void trainer_name_arithmetic(const struct trainer *trainer, char ret_name[ARITHMETIC_MAX])
{
    snprintf(ret_name, ARITHMETIC_MAX, "%s%s", device_arithmetic(trainer->device),
             computes_alike(trainer) ? trainer->xla.code : "");
}

int trainer_open_member(struct trainer *trainer, struct error *error)
{
    if (trainer->crew.size == 1 || trainer_serves_parameters(trainer))
        return 0;
    const char *address = trainer_listen_address(trainer);
    uint16_t data_port;
    char arithmetic[ARITHMETIC_MAX];
    if (open_data_plane(trainer, address, &data_port, error) < 0)
        return -1;
    trainer_name_arithmetic(trainer, arithmetic);
    const struct member_options options = {
        .job_uid = trainer->identity->job_uid,
        .attempt = (uint32_t)trainer->identity->attempt,
        .incarnation = (uint32_t)trainer->identity->incarnation,
        .rank = trainer->crew.rank,
        .size = trainer->crew.size,
        .least = trainer->crew.least,
        .expected = trainer->crew.expected,
        .seats = trainer->crew.seats,
        .listen_address = address,
        .data_port = data_port,
        .loose = trainer->hub != NULL,
        .lost_ms = trainer->identity->lost_ms,
        .logical_shards = (unsigned)trainer->plan.logical_shards,
        .arithmetic = computes_alike(trainer) ? arithmetic : NULL,
    };
    return member_start(&options, &trainer->member, error);
}
