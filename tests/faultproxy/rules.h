/* SPDX-License-Identifier: Apache-2.0
 *
 * Which request meets which fault. A rule file is a JSON array, first match wins:
 *
 *   [{"method": "GET", "path": "/pods", "watch": true, "fault": "cut", "afterBytes": 200, "probability": 0.5, "times": 3},
 *    {"fault": "status", "status": 429, "retryAfter": 1, "probability": 0.05},
 *    {"fault": "delay", "delayMs": 300, "probability": 0.1}]
 *
 * A rule without method, path (a part of it) or watch fits all, with "writes": true all but GET; without probability it
 * always strikes; without times as often as it fits, but for the first "skip".
 */
#ifndef COXSWAIN_FAULTPROXY_RULES_H
#define COXSWAIN_FAULTPROXY_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json.h"

#define FAULTS(X)                                                                                                      \
    X(NONE, "none")           /* pass */                                                                               \
    X(STATUS, "status")       /* answer `status` at once, with Retry-After if given */                                 \
    X(DELAY, "delay")         /* pass after delayMs */                                                                 \
    X(HANG, "hang")           /* never answer */                                                                       \
    X(MALFORMED, "malformed") /* 200 and half a JSON object */                                                         \
    X(CUT, "cut")             /* end the body after afterBytes */                                                      \
    X(DUPLICATE, "duplicate") /* each event of a watch twice */                                                        \
    X(EXPIRE, "expire")       /* a watch that says 410 and ends */                                                     \
    X(KILL, "kill")           /* SIGKILL to --victim in place of the request; "afterwards": true: of its answer */
enum fault {
#define X(name, word) FAULT_##name,
    FAULTS(X)
#undef X
};

struct rule {
    const char *method, *path; /* NULL: any */
    enum json_type watch;      /* JSON_ABSENT: any */
    bool watch_wanted, writes, afterwards;
    enum fault fault;
    int64_t status, retry_after, delay_ms, after_bytes;
    double probability;
    int64_t times; /* left; -1: no end */
    int64_t skip;  /* left */
};

struct rules {
    struct json *source; /* strings are borrowed from it */
    struct rule *list;
    size_t count;
    uint64_t random; /* state of the generator (SplitMix64, Steele et al. 2014) */
};

#define RULES_MAX (1024 * 1024)

/* ERROR_INVALID for what is no array of objects or names no fault; at most RULES_MAX bytes. */
int rules_parse(const char *text, size_t length, uint64_t seed, struct rules *ret_rules, struct error *error);
int rules_read(const char *path, uint64_t seed, struct rules *ret_rules, struct error *error);
void rules_release(struct rules *rules);
/* The rule that strikes this request; NULL: let it pass. */
const struct rule *rules_choose(struct rules *rules, const char *method, const char *path, bool watch);

#endif
