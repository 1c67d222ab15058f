/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/class_view.h"

#include <stdlib.h>

#include "common/job/training_class.h"
#include "common/memory.h"

struct class_view *class_view_new(const struct json *object)
{
    struct class_view *view = memory_allocate(1, sizeof *view);
    struct error error = ERROR_INIT;
    view->uid = memory_copy_string(json_string_at(object, "metadata.uid", ""));
    view->generation = json_integer_at(object, "metadata.generation", 0);
    if (training_class_check(object, &error) < 0)
        view->flaw = memory_copy_string(error.message);
    else
        view->spec = json_copy(json_member(object, "spec"));
    return view;
}

void class_view_free(struct class_view *view)
{
    free(view->uid);
    free(view->flaw);
    json_free(view->spec);
    free(view);
}
