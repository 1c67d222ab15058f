/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases that run on the CPU and on a GPU and compare the results. Each case fills its buffers from seeds, so that both sides get the same
 * numbers, and names the outputs to compare. A third run, on the GPU again, must have the same bits as the second. With values in
 * bfloat16 or float16, the CPU computes in float32 with rounded numbers, and its results are rounded before they are compared. Prints
 * ok/not ok lines (see tests/run). Does not need Criterion.
 */
#ifndef COXSWAIN_TESTS_GPU_CHECK_H
#define COXSWAIN_TESTS_GPU_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/device/device.h"

/* Prints one line. `format` is the reason of a failure. */
void verdict(bool ok, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Returns 0 if all verdicts were ok. */
int verdicts_exit_status(void);

/* Ends the program if a call has failed that no case tests. */
void must(int result, const struct error *error);

enum result_kind { RESULT_FLOATS, RESULT_VALUES, RESULT_DOUBLES, RESULT_LOSS };
struct output {
    enum result_kind kind;
    int64_t count;
    void *memory;
};

/* A device and a case's allocations on it. */
#define SIDE_BUFFERS_MAX 32
struct side {
    enum device_type type;
    struct device *device;
    struct device_stream *stream;
    enum stored rounds; /* precision to which values are rounded, */
    enum stored stored; /* and precision in which they are stored */
    void *buffers[SIDE_BUFFERS_MAX];
    unsigned buffer_count;
    struct output outputs[SIDE_BUFFERS_MAX];
    unsigned output_count;
};
void side_open(struct side *side, enum device_type type);
void side_close(struct side *side);
/* Frees a case's buffers. */
void side_clear(struct side *side);

/* Device memory with `count` numbers in [-1, 1), or tokens in [0, limit), that depend on `seed` only. */
float *side_numbers(struct side *side, int64_t count, uint32_t seed);
/* The same as values. */
float *side_values(struct side *side, int64_t count, uint32_t seed);
/* Returns the address of an element of values. */
float *side_from(const struct side *side, float *values, int64_t element);
int32_t *side_tokens(struct side *side, int64_t count, int64_t limit, uint32_t seed);
double *side_workspace(struct side *side, int64_t count);
/* The same, for an output to compare after the run. It begins with numbers, which the operation must overwrite. */
float *side_output(struct side *side, int64_t count);
float *side_output_values(struct side *side, int64_t count);
double *side_output_doubles(struct side *side, int64_t count);
struct loss_sums *side_output_loss(struct side *side);

/* Waits for all launches, and returns an output's floats, or its values as the side rounds them; free() them. */
float *side_read(struct side *side, const struct output *output);

/* Copies between host memory and a side's device, and waits. */
void side_put(struct side *side, void *to, const void *from, int64_t bytes);
void side_get(struct side *side, void *to, const void *from, int64_t bytes);

/* Returns the norm of the difference over the norm of `expected`; NaN if a number is NaN. */
double relative_error(const float *found, const float *expected, int64_t count);

typedef void side_case(struct side *side, const int64_t *sizes);
/* Runs a case on all sides. Outputs may differ by `tolerance` (relative, of norms; 0: by no bit), rounded values by one unit in the last
 * place. */
void compare_sides(struct side *cpu, struct side *gpu, const char *name, side_case *function, const int64_t *sizes,
                   double tolerance);

/* Checks the operations whose names have this beginning, with values in float32, then in bfloat16 and float16. */
void check_operations(struct side *cpu, struct side *gpu, const char *beginning);
void check_not_a_number(struct side *cpu, struct side *gpu);
void check_steps(struct side *cpu, struct side *gpu);
/* Checks the precision of the factors, and bias and GELU within cuBLASLt (`fused`). */
void check_products(struct side *plain, struct side *fused);
/* Compares one launch with several; both sides are GPUs. */
void check_launches(struct side *plain, struct side *fused);
void check_streams(struct side *gpu);
void check_recordings(struct side *gpu);
void check_peer_replicas(struct side *cpu, struct side *gpu);
/* Checks how much work is done, where that can be counted: on an emulated GPU. */
void check_work(struct side *gpu);
/* Prints the number of GPUs that a worker finds, and its NCCL. Returns 0. */
int tell_machine(void);
struct learner;
/* Compares a model in two parts with the whole model on one GPU: all bits must be the same. */
void check_stages(struct learner *whole);
/* Checks which launches of a pass only move values. */
void check_moves(struct side *gpu);
/* Compares convolutions of cuDNN with ours, and checks that cuDNN is used. */
void check_convolutions(struct side *plain, struct side *dnn);
/* `fused`: the GPU with cuBLASLt. `small`: only models that are small enough for finite differences. */
void check_models(struct side *cpu, struct side *gpu, struct side *fused, bool small);

#endif
