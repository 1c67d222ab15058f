/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/main_container.h"

#include <criterion/criterion.h>
#include <string.h>

#define TOLD "\"env\":[{\"name\":\"RANK\",\"value\":\"0\"},{\"name\":\"COXSWAIN_JOB_UID\",\"value\":\"j\"}]"

static void expect(const char *containers, const char *name)
{
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    SCOPED_JSON *pod = NULL;
    buffer_format(&text, "{\"spec\":{\"containers\":[%s]}}", containers);
    cr_assert_eq(json_parse(text.data, text.length, 4096, &pod, NULL), 0);
    cr_expect_str_eq(json_string_at(main_container(pod), "name", "none"), name);
}

Test(main_container, is_the_trainer_wherever_it_stands)
{
    expect("{\"name\":\"trainer\"}", "trainer");
    expect("{\"name\":\"proxy\"," TOLD "},{\"name\":\"trainer\"}", "trainer");
}

Test(main_container, else_is_the_first_of_the_template)
{
    expect("{\"name\":\"pytorch\"," TOLD "},{\"name\":\"logger\"," TOLD "}", "pytorch");
}

/* Linkerd and Istio put their proxy first, so that it is there before the others start. */
Test(main_container, is_none_that_a_webhook_has_put_before_it)
{
    expect("{\"name\":\"linkerd-proxy\",\"env\":[{\"name\":\"A\"}]},{\"name\":\"istio-proxy\"},"
           "{\"name\":\"pytorch\"," TOLD "},{\"name\":\"logger\"," TOLD "}",
           "pytorch");
}

Test(main_container, another_owners_pod_uses_the_first)
{
    expect("{\"name\":\"a\"},{\"name\":\"b\"}", "a");
    expect("", "none");
}
