/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/variables.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 300
#define ELEMENTS (ROWS * 256 + 5)

static struct parameter_tensor tensors[] = {
    {.name = "w", .shape = {ROWS, 256}, .rank = 2, .offset = 0, .elements = ROWS * 256},
    {.name = "b", .shape = {5}, .rank = 1, .offset = ROWS * 256, .elements = 5},
};
static const struct parameter_layout layout = {.tensors = tensors, .tensor_count = 2, .elements = ELEMENTS};
static const struct optimizer_spec momentum = {.type = OPTIMIZER_SGD, .learning_rate = 1, .momentum = 0.5};
static float flat[ELEMENTS];

static struct device *device;
static struct placement placement;
static struct variables variables[2];

static void must(int result, const struct error *error)
{
    cr_assert(result == 0, "%s", error->message);
}

static void set_up(unsigned shares)
{
    const struct ticket_set none = {0};
    struct error error = ERROR_INIT;
    must(device_open(&(struct device_options){.threads = 1}, &device, &error), &error);
    placement_init(&placement, &layout, 2);
    for (unsigned i = 0; i < 2; i++) {
        const struct variables_options options = {
            .device = device, .optimizer = &momentum, .placement = &placement, .server = i, .shares = shares};
        must(variables_init(&variables[i], &options, &error), &error);
        variables_start(&variables[i], flat, &none, 0);
    }
}

static void tear_down(void)
{
    for (unsigned i = 0; i < 2; i++)
        variables_release(&variables[i]);
    placement_release(&placement);
    device_close(device);
}

/* Everything of server 0 has one value, since all gradients are alike. */
static float value(void)
{
    return variables[0].parameters[variables[0].elements - 1];
}

static void fill(float gradient)
{
    for (int64_t i = 0; i < ELEMENTS; i++)
        flat[i] = gradient;
}

Test(variables, an_update_counts_once)
{
    set_up(0);
    fill(1);
    struct update update = {.ticket = 4, .learning_rate = 0.5, .gradient_scale = 1, .gradients = flat, .flat = true};
    enum update_verdict verdict;
    cr_assert(variables_apply(&variables[0], &update, &verdict, NULL) == 0 && verdict == UPDATE_APPLIED);
    cr_expect(value() == -0.5f && variables[0].updates == 1);
    cr_assert(variables_apply(&variables[0], &update, &verdict, NULL) == 0 && verdict == UPDATE_DUPLICATE);
    cr_expect(value() == -0.5f);
    update.ticket = 5;
    update.lineage = 1;
    cr_assert(variables_apply(&variables[0], &update, &verdict, NULL) == 0 && verdict == UPDATE_OUTDATED);
    update.lineage = 0;
    cr_assert(variables_apply(&variables[0], &update, &verdict, NULL) == 0 && verdict == UPDATE_APPLIED);
    cr_expect(value() == -0.5f - 0.75f, "the velocity lives here: %g", value());
    tear_down();
}

Test(variables, what_is_staler_than_the_bound_is_refused_where_others_compute_it)
{
    set_up(0);
    fill(1);
    struct update update = {
        .ticket = 1, .clock = 7, .learning_rate = 1, .gradient_scale = 1, .gradients = flat, .flat = true};
    enum update_verdict verdict;
    variables[0].options.refuses_late = true;
    variables[0].options.staleness = 2;
    cr_assert(variables_apply(&variables[0], &update, &verdict, NULL) == 0 && verdict == UPDATE_APPLIED);
    update.ticket = 0;
    update.clock = 4;
    cr_assert(variables_apply(&variables[0], &update, &verdict, NULL) == 0 && verdict == UPDATE_LATE);
    cr_expect(value() == -1 && variables[0].updates == 1 && !ticket_set_has(&variables[0].applied, 0));
    update.clock = 5;
    cr_assert(variables_apply(&variables[0], &update, &verdict, NULL) == 0 && verdict == UPDATE_APPLIED);
    update.clock = 0;
    cr_assert(variables_apply(&variables[0], &update, &verdict, NULL) == 0 && verdict == UPDATE_DUPLICATE);
    update.ticket = 2;
    variables[0].options.refuses_late = false;
    cr_assert(variables_apply(&variables[0], &update, &verdict, NULL) == 0 && verdict == UPDATE_APPLIED);
    tear_down();
}

Test(variables, a_share_without_examples_is_no_update)
{
    set_up(0);
    fill(1);
    struct update update = {.learning_rate = 0.5, .gradient_scale = 1, .gradients = flat, .flat = true};
    struct update empty = {.ticket = 1, .gradients = flat, .flat = true};
    enum update_verdict verdict;
    cr_assert(variables_apply(&variables[0], &update, &verdict, NULL) == 0 && verdict == UPDATE_APPLIED);
    cr_assert(variables_apply(&variables[0], &empty, &verdict, NULL) == 0 && verdict == UPDATE_APPLIED);
    cr_expect(value() == -0.5f && variables[0].slots[0][0] == 1, "the velocity has decayed");
    cr_expect(variables[0].updates == 1, "no step of an optimizer that counts them");
    cr_assert(variables_apply(&variables[0], &empty, &verdict, NULL) == 0 && verdict == UPDATE_DUPLICATE);
    tear_down();
}

Test(variables, packed_and_flat_gradients_do_the_same)
{
    set_up(0);
    for (int64_t i = 0; i < ELEMENTS; i++)
        flat[i] = (float)i;
    for (unsigned server = 0; server < 2; server++) {
        struct variables *own = &variables[server];
        float *packed = calloc((size_t)own->elements, sizeof *packed),
              *first = calloc((size_t)own->elements, sizeof *first);
        placement_pack(&placement, server, flat, packed);
        struct update update = {.learning_rate = 1, .gradient_scale = 1, .gradients = packed};
        enum update_verdict verdict;
        cr_assert(variables_apply(own, &update, &verdict, NULL) == 0);
        for (int64_t i = 0; i < own->elements; i++)
            first[i] = own->parameters[i];
        const struct ticket_set none = {0};
        fill(0);
        variables_start(own, flat, &none, 0);
        for (int64_t i = 0; i < ELEMENTS; i++)
            flat[i] = (float)i;
        update.gradients = flat;
        update.flat = true;
        cr_assert(variables_apply(own, &update, &verdict, NULL) == 0);
        for (int64_t i = 0; i < own->elements; i++)
            cr_assert(own->parameters[i] == first[i], "server %u, element %lld", server, (long long)i);
        free(packed);
        free(first);
    }
    tear_down();
}

Test(variables, a_step_waits_for_all_its_shares)
{
    set_up(3);
    struct update update = {.gradient_scale = 1, .gradients = flat, .flat = true};
    enum update_verdict verdict;
    double squares;
    for (update.ticket = 2; update.ticket >= 0; update.ticket--) {
        struct error error = ERROR_INIT;
        cr_expect(variables_reduce(&variables[0], &squares, &error) < 0 && error.kind == ERROR_INTERNAL);
        fill((float)(update.ticket + 1));
        cr_assert(variables_stage(&variables[0], &update, &verdict, NULL) == 0 && verdict == UPDATE_APPLIED);
        cr_assert(variables_stage(&variables[0], &update, &verdict, NULL) == 0 && verdict == UPDATE_DUPLICATE);
        cr_expect(value() == 0);
    }
    cr_assert(variables_reduce(&variables[0], &squares, NULL) == 0);
    cr_expect_float_eq(squares, 36.0 * (double)variables[0].elements, 1e-3 * squares);
    cr_assert(variables_apply_step(&variables[0], 0, 1, 0.5, NULL) == 0);
    cr_expect(value() == -3 && variables[0].updates == 1);
    cr_assert(variables_apply_step(&variables[0], 0, 1, 0.5, NULL) == 0, "told twice");
    cr_expect(value() == -3);
    cr_expect(variables_apply_step(&variables[0], 2, 1, 1, NULL) < 0);
    tear_down();
}

Test(variables, what_is_written_off_is_not_applied_any_more)
{
    set_up(0);
    SCOPED(ticket_set_release) struct ticket_set lost = {0};
    ticket_set_add(&lost, 3);
    variables_discard_tickets(&variables[0], &lost, false);
    cr_expect(variables[0].empty == 0);
    ticket_set_add(&lost, 4);
    variables_discard_tickets(&variables[0], &lost, true);
    cr_expect(variables[0].empty == 1, "3 was settled before");
    enum update_verdict verdict;
    struct update update = {.ticket = 3, .learning_rate = 1, .gradient_scale = 1, .gradients = flat, .flat = true};
    cr_assert(variables_apply(&variables[0], &update, &verdict, NULL) == 0 && verdict == UPDATE_DUPLICATE);
    tear_down();
}

/* ---------------------------------------------------------------- rows of a table */

static struct parameter_tensor table_tensors[] = {
    {.name = "b", .shape = {5}, .rank = 1, .offset = 0, .elements = 5},
    {.name = "table", .shape = {ROWS, 256}, .rank = 2, .offset = 5, .elements = ROWS * 256, .by_rows = true},
};
static const struct parameter_layout table_layout = {.tensors = table_tensors, .tensor_count = 2, .elements = ELEMENTS};
static const struct optimizer_spec optimizers[] = {
    {.type = OPTIMIZER_SGD},
    {.type = OPTIMIZER_SGD, .momentum = 0.9},
    {.type = OPTIMIZER_SGD, .weight_decay = 0.1},
    {.type = OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.01},
};

/* Two of the same: one takes whole gradients, the other the rows that are not 0. */
static void open_twins(const struct optimizer_spec *optimizer, unsigned shares, int64_t updates)
{
    const struct ticket_set none = {0};
    struct error error = ERROR_INIT;
    for (int64_t i = 0; i < ELEMENTS; i++)
        flat[i] = 0.001f * (float)(i % 1000 + 1);
    for (unsigned i = 0; i < 2; i++) {
        const struct variables_options options = {
            .device = device, .optimizer = optimizer, .placement = &placement, .shares = shares};
        must(variables_init(&variables[i], &options, &error), &error);
        variables_start(&variables[i], flat, &none, updates);
    }
}

/* Rows n, n + 7, n + 14 … have gradients, others 0. */
static void draw_gradients(int64_t n, bool marked[ROWS])
{
    memset(flat, 0, sizeof flat);
    for (int64_t i = 0; i < ROWS; i++)
        marked[i] = i % 7 == n % 7;
    for (int64_t i = 0; i < ELEMENTS; i++)
        if (i < 5 || marked[(i - 5) / 256])
            flat[i] = (float)((i * 31 + n * 17) % 101 - 50) / 50;
}

static void expect_twins(const char *when)
{
    size_t bytes = (size_t)variables[0].elements * sizeof(float);
    cr_assert(memcmp(variables[0].parameters, variables[1].parameters, bytes) == 0, "%s", when);
    for (unsigned i = 0; i < variables[0].slot_count; i++)
        cr_assert(memcmp(variables[0].slots[i], variables[1].slots[i], bytes) == 0, "%s, slot %u", when, i);
}

/* One gradient into both: whole, and as rows. */
static void update_twins(int64_t ticket, unsigned shares, bool is_flat, const struct row_set *rows)
{
    static float carried[ELEMENTS];
    enum update_verdict verdict;
    struct error error = ERROR_INIT;
    cr_assert(rows->listed);
    struct update update = {
        .ticket = ticket, .learning_rate = 0.1, .gradient_scale = 0.5, .gradients = flat, .flat = true};
    int (*take)(struct variables *, const struct update *, enum update_verdict *, struct error *) =
        shares > 0 ? variables_stage : variables_apply;
    must(take(&variables[0], &update, &verdict, &error), &error);
    placement_carry(&placement, 0, rows, flat, ORDER_LAYOUT, carried, ORDER_CARRIED);
    update.rows = rows;
    update.flat = is_flat;
    update.gradients = is_flat ? flat : carried;
    must(take(&variables[1], &update, &verdict, &error), &error);
}

static void step_twins(int64_t step)
{
    double squares[2];
    struct error error = ERROR_INIT;
    for (unsigned i = 0; i < 2; i++) {
        must(variables_reduce(&variables[i], &squares[i], &error), &error);
        must(variables_apply_step(&variables[i], step, 0.1, 0.5, &error), &error);
    }
    cr_assert(squares[0] == squares[1]);
}

static void try_rows(const struct optimizer_spec *optimizer, unsigned shares, bool is_flat)
{
    static bool marked[ROWS];
    struct row_set rows = {0};
    open_twins(optimizer, shares, 0);
    for (int64_t ticket = 0; ticket < 12; ticket++) {
        draw_gradients(ticket, marked);
        placement_choose_rows(&placement, &table_tensors[1], marked, &rows);
        update_twins(ticket, shares, is_flat, &rows);
        if (shares > 0 && (ticket + 1) % shares == 0)
            step_twins(ticket / shares);
        expect_twins(is_flat ? "in place" : "as they travel");
    }
    for (unsigned i = 0; i < 2; i++)
        variables_release(&variables[i]);
    row_set_release(&rows);
}

Test(variables, rows_of_a_table_give_the_bits_of_the_whole_gradient)
{
    struct error error = ERROR_INIT;
    must(device_open(&(struct device_options){.threads = 1}, &device, &error), &error);
    placement_init(&placement, &table_layout, 1);
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        for (int is_flat = 0; is_flat < 2; is_flat++) {
            try_rows(&optimizers[i], 0, is_flat);
            try_rows(&optimizers[i], 3, is_flat);
        }
    placement_release(&placement);
    device_close(device);
}
