/* SPDX-License-Identifier: Apache-2.0
 *
 * coxswain-pod.so, which the node of the embedded control plane loads into foreign
 * programs. All pods of one machine share its network; a program that knows nothing
 * of that finds its own address here:
 *
 *   bind      to all interfaces or to localhost binds to the pod's address, so that
 *             two pods may listen on the same port;
 *   connect   to localhost connects to the pod's address;
 *   getaddrinfo, gethostname
 *             where the pod could not be given an /etc/hosts of its own, know the
 *             names in $COXSWAIN_HOSTS_FILE and the pod's own.
 *
 * A pod's address is IPv4; sockets for both kinds get it mapped, and what listens on
 * IPv6 alone is reachable for nobody. Programs that are linked statically, or ask the
 * kernel without the C library, are not helped.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/contract/environment.h"

#define LINE_MAX_LENGTH 1024

/* The C library's own, of the type of ours. */
#define NEXT(function)                                                                                                 \
    static __typeof__(&(function)) next;                                                                               \
    if (!next)                                                                                                         \
    next = (__typeof__(&(function)))dlsym(RTLD_NEXT, #function)

static bool pod_address(struct in_addr *ret_address)
{
    const char *text = getenv(ENV_POD_IP);
    return text && inet_pton(AF_INET, text, ret_address) == 1;
}

/* An address as it is to be used instead of the one that was given. */
struct replacement {
    struct sockaddr_storage address;
    socklen_t length;
};

static bool is_loopback(const struct in_addr *address)
{
    return ntohl(address->s_addr) == INADDR_LOOPBACK;
}

static bool replace_v4(const struct sockaddr *given, bool any_too, struct replacement *ret)
{
    struct sockaddr_in address;
    struct in_addr own;
    memcpy(&address, given, sizeof address);
    bool meant = is_loopback(&address.sin_addr) || (any_too && address.sin_addr.s_addr == htonl(INADDR_ANY));
    if (!meant || !pod_address(&own))
        return false;
    address.sin_addr = own;
    memcpy(&ret->address, &address, sizeof address);
    ret->length = sizeof address;
    return true;
}

static bool is_own_v6(const struct in6_addr *address, bool any_too)
{
    static const struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT, any = IN6ADDR_ANY_INIT;
    struct in_addr mapped;
    memcpy(&mapped, address->s6_addr + 12, sizeof mapped);
    if (IN6_IS_ADDR_V4MAPPED(address))
        return is_loopback(&mapped) || (any_too && mapped.s_addr == htonl(INADDR_ANY));
    return memcmp(address, &loopback, sizeof loopback) == 0 || (any_too && memcmp(address, &any, sizeof any) == 0);
}

static bool replace_v6(const struct sockaddr *given, bool any_too, struct replacement *ret)
{
    struct sockaddr_in6 address;
    struct in_addr own;
    memcpy(&address, given, sizeof address);
    if (!is_own_v6(&address.sin6_addr, any_too) || !pod_address(&own))
        return false;
    memset(&address.sin6_addr, 0, 10);
    memset(address.sin6_addr.s6_addr + 10, 0xff, 2);
    memcpy(address.sin6_addr.s6_addr + 12, &own, sizeof own);
    memcpy(&ret->address, &address, sizeof address);
    ret->length = sizeof address;
    return true;
}

static bool replace(const struct sockaddr *given, socklen_t length, bool any_too, struct replacement *ret)
{
    if (given && given->sa_family == AF_INET && length >= sizeof(struct sockaddr_in))
        return replace_v4(given, any_too, ret);
    if (given && given->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6))
        return replace_v6(given, any_too, ret);
    return false;
}

/* Whether a socket takes IPv6 alone. */
static bool is_v6_only(int fd)
{
    int only = 0;
    socklen_t size = sizeof only;
    return getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &size) == 0 && only;
}

int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    NEXT(bind);
    struct replacement instead;
    const struct sockaddr *given = address.__sockaddr__;
    if (!replace(given, length, true, &instead))
        return next(fd, address, length);
    if (given->sa_family == AF_INET6 && is_v6_only(fd)) {
        struct sockaddr_in6 nowhere = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        return next(fd, (struct sockaddr *)&nowhere, sizeof nowhere);
    }
    return next(fd, (struct sockaddr *)&instead.address, instead.length);
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    NEXT(connect);
    struct replacement instead;
    if (!replace(address.__sockaddr__, length, false, &instead))
        return next(fd, address, length);
    return next(fd, (struct sockaddr *)&instead.address, instead.length);
}

/* ---------------------------------------------------------------- names */

/* "address name name …": whether one of the names is `wanted`; cuts the line after the address. */
static bool line_names(char *line, const char *wanted)
{
    char *state;
    line[strcspn(line, "#\n")] = '\0';
    if (!strtok_r(line, " \t", &state))
        return false;
    for (const char *name; (name = strtok_r(NULL, " \t", &state));)
        if (strcasecmp(name, wanted) == 0)
            return true;
    return false;
}

/* The address of a name in the pod's hosts file. */
static bool published(const char *name, char ret_address[LINE_MAX_LENGTH])
{
    const char *path = getenv(ENV_HOSTS_FILE);
    FILE *file = path && name && *name ? fopen(path, "re") : NULL;
    bool found = false;
    while (file && !found && fgets(ret_address, LINE_MAX_LENGTH, file))
        found = line_names(ret_address, name);
    if (file)
        fclose(file);
    return found;
}

int getaddrinfo(const char *restrict name, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict result)
{
    NEXT(getaddrinfo);
    char address[LINE_MAX_LENGTH];
    if (!published(name, address))
        return next(name, service, hints, result);
    int code = next(address, service, hints, result);
    if (code == 0 && (*result)->ai_canonname) {
        free((*result)->ai_canonname);
        (*result)->ai_canonname = strdup(name);
    }
    return code;
}

int gethostname(char *name, size_t size)
{
    NEXT(gethostname);
    const char *own = getenv("HOSTNAME");
    if (!getenv(ENV_HOSTS_FILE) || !own)
        return next(name, size);
    if (strlen(own) >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, own, strlen(own) + 1);
    return 0;
}
