/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases that run on the CPU and on a GPU and compare. Each case fills its
 * buffers from seeds, so that both sides see the same numbers, and names what is
 * to be compared; a third run, on the GPU again, must give the bits of the second.
 * Where values are bfloat16 or float16 the CPU computes in float32 with numbers that are
 * rounded so, and its results are rounded before they are compared.
 *
 * Prints ok/not ok lines (see tests/run). Criterion is not needed.
 */
#ifndef COXSWAIN_TESTS_GPU_CHECK_H
#define COXSWAIN_TESTS_GPU_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/device/device.h"

/* A verdict: one line. `format` says why, when it is not ok. */
void verdict(bool ok, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* 0 when all were ok. */
int verdicts_exit_status(void);

/* Ends the program when a call has failed that no case is about. */
void must(int result, const struct error *error);

enum output_kind { OUTPUT_FLOATS, OUTPUT_VALUES, OUTPUT_DOUBLES, OUTPUT_LOSS };
struct output {
    enum output_kind kind;
    int64_t count;
    void *memory;
};

/* One device and what a case has allocated on it. */
#define SIDE_BUFFERS_MAX 32
struct side {
    enum device_type type;
    struct device *device;
    struct device_stream *stream;
    enum stored rounds; /* what values are rounded to, */
    enum stored stored; /* and how they lie in memory */
    void *buffers[SIDE_BUFFERS_MAX];
    unsigned buffer_count;
    struct output outputs[SIDE_BUFFERS_MAX];
    unsigned output_count;
};
void side_open(struct side *side, enum device_type type);
void side_close(struct side *side);
/* Frees the buffers of a case. */
void side_clear(struct side *side);

/* Device memory of `count` numbers in [-1, 1), or tokens in [0, limit), that depend on `seed` alone. */
float *side_numbers(struct side *side, int64_t count, uint32_t seed);
/* The same as values. */
float *side_values(struct side *side, int64_t count, uint32_t seed);
/* From the value on. */
float *side_from(const struct side *side, float *values, int64_t element);
int32_t *side_tokens(struct side *side, int64_t count, int64_t limit, uint32_t seed);
double *side_workspace(struct side *side, int64_t count);
/* The same, to be compared when the operation has run; poisoned with numbers. */
float *side_output(struct side *side, int64_t count);
float *side_output_values(struct side *side, int64_t count);
double *side_output_doubles(struct side *side, int64_t count);
struct loss_sums *side_output_loss(struct side *side);

/* Floats or values of an output, rounded as the side rounds those, once all that was launched is done; free() them. */
float *side_read(struct side *side, const struct output *output);

/* Between host memory and a side's device, through its own copies. Waits. */
void side_put(struct side *side, void *to, const void *from, int64_t bytes);
void side_get(struct side *side, void *to, const void *from, int64_t bytes);

/* The norm of the difference over the norm of `expected`; NaN when there is one. */
double relative_error(const float *found, const float *expected, int64_t count);

typedef void side_case(struct side *side, const int64_t *sizes);
/* Runs it on all sides; outputs may differ by `tolerance` (relative, of norms; 0: not in a bit), values that are rounded by a
 * last place. */
void compare_sides(struct side *cpu, struct side *gpu, const char *name, side_case *function, const int64_t *sizes,
                   double tolerance);

/* Those whose names begin so. With values in float32, then in bfloat16 and float16. */
void check_operations(struct side *cpu, struct side *gpu, const char *beginning);
void check_not_a_number(struct side *cpu, struct side *gpu);
void check_steps(struct side *cpu, struct side *gpu);
/* Which numbers their factors are, and who finishes them. */
void check_products(struct side *plain, struct side *fused);
/* One launch and several; both are GPUs. */
void check_launches(struct side *plain, struct side *fused);
void check_streams(struct side *gpu);
void check_recordings(struct side *gpu);
void check_peer_replicas(struct side *cpu, struct side *gpu);
/* How much is done, where that can be counted: on an emulated GPU. */
void check_work(struct side *gpu);
/* Prints how many GPUs a worker finds, and which NCCL. 0. */
int tell_machine(void);
struct learner;
/* A model in two parts against the whole, on one GPU: not a bit differs. */
void check_stages(struct learner *whole);
/* What a pass launches that only moves values. */
void check_moves(struct side *gpu);
/* Those of cuDNN against ours, and that they are cuDNN's. */
void check_convolutions(struct side *plain, struct side *dnn);
/* `fused`: the GPU where cuBLASLt finishes products. `small`: only models that are small enough for finite differences. */
void check_models(struct side *cpu, struct side *gpu, struct side *fused, bool small);

#endif
