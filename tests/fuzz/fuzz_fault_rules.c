/* SPDX-License-Identifier: Apache-2.0
 *
 * With any rule file, faultproxy either lets a request through or applies an existing fault.
 */
#include <stdint.h>
#include <stdlib.h>

#include "common/json.h"
#include "tests/faultproxy/rules.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rules rules;
    if (rules_parse((const char *)data, size, 1, &rules, NULL) < 0)
        return 0;
    const struct rule *rule = rules_choose(&rules, "GET", "/api/v1/pods", true);
    if (rule && (rule->fault == FAULT_NONE || rule->fault > FAULT_EXPIRE))
        abort();
    rules_release(&rules);
    return 0;
}
