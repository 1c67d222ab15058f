/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/contract/environment.h"
#include "worker/comm/socket_address.h"

static bool is_numeric(const char *text)
{
    union socket_address ignored;
    return socket_address_parse(text, 0, &ignored, NULL) == 0;
}

static const char *skip_blank(const char *text, const char *end)
{
    while (text < end && (*text == ' ' || *text == '\t' || *text == '\r'))
        text++;
    return text;
}

static const char *word_end(const char *text, const char *end)
{
    while (text < end && *text != ' ' && *text != '\t' && *text != '\r' && *text != '#')
        text++;
    return text;
}

/* Whether the line "address name name… # comment" lists `host`; *ret_first is its address then. */
static bool line_lists(const char *line, const char *end, const char *host, const char **ret_first, size_t *ret_length)
{
    const char *first = skip_blank(line, end);
    const char *first_end = word_end(first, end);
    size_t host_length = strlen(host);
    for (const char *word = skip_blank(first_end, end); word < end && *word != '#';) {
        const char *stop = word_end(word, end);
        if ((size_t)(stop - word) == host_length && strncasecmp(word, host, host_length) == 0) {
            *ret_first = first;
            *ret_length = (size_t)(first_end - first);
            return true;
        }
        word = skip_blank(stop, end);
    }
    return false;
}

int resolve_in_hosts_text(const char *text, size_t length, const char *host, char ret_address[RESOLVE_ADDRESS_MAX])
{
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL)
            stop = end;
        const char *address = NULL;
        size_t address_length = 0;
        if (line_lists(line, stop, host, &address, &address_length) && address_length < RESOLVE_ADDRESS_MAX) {
            char copy[RESOLVE_ADDRESS_MAX] = "";
            memcpy(copy, address, address_length);
            if (is_numeric(copy)) {
                memcpy(ret_address, copy, sizeof(copy));
                return 0;
            }
        }
        line = stop + 1;
    }
    return -1;
}

static int resolve_by_file(const char *host, char ret_address[RESOLVE_ADDRESS_MAX])
{
    const char *path = getenv(ENV_HOSTS_FILE);
    if (path == NULL || *path == '\0')
        return -1;
    SCOPED_BUFFER text = BUFFER_INIT(RESOLVE_FILE_MAX);
    if (buffer_read_file(&text, path, NULL) < 0)
        return -1;
    return resolve_in_hosts_text(buffer_text(&text), text.length, host, ret_address);
}

static int resolve_by_system(const char *host, char ret_address[RESOLVE_ADDRESS_MAX], struct error *error)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int status = getaddrinfo(host, NULL, &hints, &found);
    if (status != 0)
        return error_set(error, ERROR_UNAVAILABLE, "%s has no address yet (%s)", host, gai_strerror(status));
    status = getnameinfo(found->ai_addr, found->ai_addrlen, ret_address, RESOLVE_ADDRESS_MAX, NULL, 0, NI_NUMERICHOST);
    freeaddrinfo(found);
    if (status != 0)
        return error_set(error, ERROR_UNAVAILABLE, "%s: %s", host, gai_strerror(status));
    return 0;
}

int resolve_host(const char *host, char ret_address[RESOLVE_ADDRESS_MAX], struct error *error)
{
    size_t length = strlen(host);
    if (length < RESOLVE_ADDRESS_MAX && is_numeric(host)) {
        memcpy(ret_address, host, length + 1);
        return 0;
    }
    if (resolve_by_file(host, ret_address) == 0)
        return 0;
    return resolve_by_system(host, ret_address, error);
}
