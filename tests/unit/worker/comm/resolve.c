/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/resolve.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/contract/environment.h"

static const char hosts[] = "# made by the node\n"
                            "127.0.0.1\tlocalhost\n"
                            "127.1.2.3 digits-worker-0 digits-worker-0.digits.default.svc # chief\n"
                            "nonsense  digits-worker-1\r\n"
                            "127.1.2.4 digits-worker-1\r\n"
                            "::1 six";

static const char *look_up(const char *host)
{
    static char address[RESOLVE_ADDRESS_MAX];
    return resolve_in_hosts_text(hosts, sizeof(hosts) - 1, host, address) == 0 ? address : "none";
}

Test(resolve, finds_names_in_a_hosts_file)
{
    cr_assert_str_eq(look_up("digits-worker-0"), "127.1.2.3");
    cr_assert_str_eq(look_up("Digits-Worker-0.digits.default.svc"), "127.1.2.3");
    cr_assert_str_eq(look_up("digits-worker-1"), "127.1.2.4");
    cr_assert_str_eq(look_up("six"), "::1");
    cr_assert_str_eq(look_up("chief"), "none");
    cr_assert_str_eq(look_up("digits"), "none");
    cr_assert_str_eq(look_up("127.1.2.3"), "none");
}

Test(resolve, asks_the_file_afresh_each_time)
{
    char path[] = "/tmp/coxswain-resolve-XXXXXX", address[RESOLVE_ADDRESS_MAX];
    int descriptor = mkstemp(path);
    setenv(ENV_HOSTS_FILE, path, 1);
    cr_assert_gt(dprintf(descriptor, "127.5.0.1 pod\n"), 0);
    cr_assert_eq(resolve_host("pod", address, NULL), 0);
    cr_assert_str_eq(address, "127.5.0.1");
    cr_assert_eq(pwrite(descriptor, "127.5.0.2", 9, 0), 9);
    cr_assert_eq(resolve_host("pod", address, NULL), 0);
    cr_assert_str_eq(address, "127.5.0.2");
    close(descriptor);
    unlink(path);
}

Test(resolve, hands_numeric_addresses_back)
{
    char address[RESOLVE_ADDRESS_MAX];
    cr_assert_eq(resolve_host("10.1.2.3", address, NULL), 0);
    cr_assert_str_eq(address, "10.1.2.3");
    cr_assert_eq(resolve_host("fd00::7", address, NULL), 0);
    cr_assert_str_eq(address, "fd00::7");
}
