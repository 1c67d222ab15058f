/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/template_fields.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/json_of.h"

Test(template_fields, only_what_no_template_has_is_unknown)
{
    static const struct {
        const char *template, *unknown;
    } rows[] = {
        {"{}", NULL},
        {"{\"spec\":{\"whatever\":1}}", NULL},
        {"{\"metadata\":{\"namespace\":\"ml\",\"generateName\":\"a-\",\"finalizers\":[],\"ownerReferences\":[]}}",
         NULL},
        {"{\"metadata\":{\"managedFields\":[],\"selfLink\":\"\",\"uid\":\"\",\"generation\":1}}", NULL},
        {"{\"specs\":{}}", "specs"},
        {"{\"metadata\":{\"label\":{\"team\":\"a\"}}}", "metadata.label"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED_JSON *template = json_of(rows[i].template);
        SCOPED_FREE char *unknown = template_fields_unknown(template);
        cr_expect_str_eq(unknown ? unknown : "", rows[i].unknown ? rows[i].unknown : "", "row %zu", i);
    }
    cr_assert_null(template_fields_unknown(NULL));
}
