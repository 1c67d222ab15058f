/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/queue_part.h"

void queue_part_take_members(struct json *part, const char *name, const struct json *from)
{
    const struct json *members = json_member(from, name);
    for (const struct json *item = json_first(members); item; item = json_next(item))
        json_set(json_set_object(part, name), json_key(item), json_copy(item));
}

void queue_part_take_place(struct json *part, const struct json *from)
{
    const struct json *tolerations = json_member(from, "tolerations");
    queue_part_take_members(part, "nodeSelector", from);
    for (const struct json *item = json_first(tolerations); item; item = json_next(item))
        json_append(json_set_array(part, "tolerations"), json_copy(item));
}

void queue_part_take(struct json *part, const struct json *from)
{
    queue_part_take_place(part, from);
    queue_part_take_members(part, "labels", from);
    queue_part_take_members(part, "annotations", from);
}
