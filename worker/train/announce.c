/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/announce.h"

#include "worker/comm/crew_certificates.h"
#include "worker/model/program.h"
#include "worker/optimizer/optimizer.h"

#include <stdio.h>

#define TEXT_MAX 8192
#define FILLER_WORTH_A_WARNING 10 /* per cent; shards that differ by one example cost less */

static void say_model(const struct trainer *trainer)
{
    const struct model_spec *model = &trainer->job->model;
    const char *preset = preset_name(model->preset),
               *engine = trainer->xla.program ? program_engine(trainer->xla.program) : "";
    bool exported = model->program_path != NULL;
    report_say(trainer->report, "model      %s%s, %lld parameters%s%s", exported ? "program " : "",
               exported  ? model->program_path
               : *preset ? preset
                         : "layers of the job",
               (long long)graph_layout(trainer->graph)->elements, *engine ? ", " : "", engine);
}

static void say_examples(const struct trainer *trainer, const char *label, const struct dataset *dataset)
{
    report_say(trainer->report, "%-10s %lld %s", label, (long long)dataset_count(dataset),
               dataset_description(dataset));
    if (*dataset_notice(dataset))
        report_say(trainer->report, "%-10s %s", label, dataset_notice(dataset));
}

static void say_data(const struct trainer *trainer)
{
    say_examples(trainer, "data", trainer->training);
    if (dataset_count(trainer->validation) > 0)
        say_examples(trainer, "held out", trainer->validation);
}

static void say_crew(const struct trainer *trainer)
{
    char devices[48] = "";
    if (trainer->job->devices.type == DEVICE_TYPE_TPU)
        snprintf(devices, sizeof devices, "%u TPU%s each, and on the host ", trainer->device_count,
                 trainer->device_count == 1 ? "" : "s");
    else if (trainer->device_count > 1)
        snprintf(devices, sizeof devices, "%u devices each: ", trainer->device_count);
    const struct crew *crew = &trainer->crew;
    char bounds[48] = "";
    if (crew_is_elastic(crew))
        snprintf(bounds, sizeof bounds, " (elastic, %u to %u)", crew->least, crew->size);
    report_say(trainer->report, "crew       %s, %u worker%s%s, %s%s%s", strategy_type_name(trainer->job->strategy.type),
               crew->expected, crew->expected == 1 ? "" : "s", bounds, devices, device_description(trainer->device),
               crew_certificates_are_set() ? ", TLS" : "");
}

static void say_steps(const struct trainer *trainer)
{
    const struct step_plan *plan = &trainer->plan;
    report_say(trainer->report, "steps      %lld, %lld an epoch, global batch %lld in %lld logical shards",
               (long long)plan->total_steps, (long long)plan->steps_per_epoch, (long long)plan->global_batch,
               (long long)plan->logical_shards);
    if (plan->learning_rate_factor != 1)
        report_say(trainer->report, "           scaleLearningRate: Linear multiplies the learning rate by %g",
                   plan->learning_rate_factor);
}

/* Calls of a program have the size that it was exported with. */
static void warn_of_filler(const struct trainer *trainer)
{
    if (trainer->job->model.program_path == NULL)
        return;
    int64_t batch = program_batch(trainer->xla.program);
    int share = step_plan_filler(&trainer->plan, batch);
    if (share >= FILLER_WORTH_A_WARNING)
        report_warn(trainer->report,
                    "%d %% of what the program computes only fills up its calls of %lld examples, since the logical "
                    "shards have %lld: export it with a batch of %lld, or change training.batchSize or logicalShards",
                    share, (long long)batch, (long long)step_plan_largest_shard(&trainer->plan),
                    (long long)step_plan_fitting_call(&trainer->plan, batch));
}

static void say_shards(const struct trainer *trainer)
{
    const struct training_state *state = &trainer->state;
    double mebibytes = (double)(state->layout.elements * state->slot_count * (int64_t)sizeof(float)) / 1048576;
    char devices[64] = "";
    if (state->shards.devices > 1)
        snprintf(devices, sizeof devices, ", a part on each of its %u GPUs", state->shards.devices);
    if (state->shards.size > 1)
        report_say(trainer->report,
                   "           optimizer slots of %.1f MiB, shared out: each of %u workers keeps its own and one "
                   "neighbour's%s",
                   mebibytes, state->shards.size, devices);
    else
        report_say(trainer->report, "           optimizer slots of %.1f MiB, shared out among %u devices", mebibytes,
                   state->shards.devices);
}

static void say_memory(const struct trainer *trainer)
{
    const struct training_state *state = &trainer->state;
    SCOPED_BUFFER text = BUFFER_INIT(TEXT_MAX);
    if (!device_memory_is_shared(trainer->device)) {
        memory_plan_print(&trainer->memory.device, &text);
        report_say(trainer->report, "memory     of a GPU: %s", buffer_text(&text));
        buffer_clear(&text);
        buffer_format(&text, "of the host: ");
    }
    memory_plan_print(&trainer->memory.host, &text);
    report_say(trainer->report, "%s     %s", device_memory_is_shared(trainer->device) ? "memory" : "      ",
               buffer_text(&text));
    if (state->shards.size > 0)
        say_shards(trainer);
}

static void say_stages_memory(const struct trainer *trainer)
{
    double mebibytes = (double)graph_layout(trainer->graph)->elements * sizeof(float) / 1048576;
    unsigned slots = optimizer_slot_count(&trainer->job->training.optimizer);
    report_say(trainer->report,
               "stages     parameters and gradients %.1f MiB each, optimizer %.1f MiB, over all of them", mebibytes,
               slots * mebibytes);
    if (trainer->stages != NULL)
        say_memory(trainer);
}

void announce_cut(const struct trainer *trainer)
{
    if (trainer_is_chief(trainer))
        say_memory(trainer);
}

static enum device_peak peak_of(enum precision precision)
{
    switch (precision) {
    case PRECISION_FLOAT32:
        return DEVICE_PEAK_FLOAT32;
    case PRECISION_TF32:
        return DEVICE_PEAK_TF32;
    default:
        return DEVICE_PEAK_HALF;
    }
}

/* Prints the peak speed with which utilisation (MFU) is computed. The chief of parameter servers computes nothing, and does not know its
 * workers' GPUs. */
static void say_peak(const struct trainer *trainer)
{
    static const char *const words[] = {
        [DEVICE_PEAK_FLOAT32] = "float32", [DEVICE_PEAK_TF32] = "TF32", [DEVICE_PEAK_HALF] = "16 bits"};
    const enum device_peak kind = peak_of(trainer->job->training.precision);
    double peak = device_peak_flops(trainer->device, kind);
    double flops = graph_flops_per_example(trainer->graph);
    report_peak(trainer->report, flops, peak);
    if (peak > 0)
        report_say(trainer->report, "peak       %g TFLOP/s a GPU in dense products of %s; an example takes %.6g GFLOP",
                   peak / 1e12, words[kind], flops / 1e9);
}

void announce_plan(const struct trainer *trainer)
{
    if (!trainer_is_chief(trainer))
        return;
    say_model(trainer);
    say_data(trainer);
    say_crew(trainer);
    say_steps(trainer);
    warn_of_filler(trainer);
    if (trainer->job->strategy.type == STRATEGY_PIPELINE)
        say_stages_memory(trainer);
    else
        say_memory(trainer);
    if (!trainer_serves_parameters(trainer))
        say_peak(trainer);
}
