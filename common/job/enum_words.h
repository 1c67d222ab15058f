/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the words of each enum of a manifest, such as "CPU", "GPU", "Auto", in the order of the C enum's values. The code behind the table
 * of fields (fields.h) reads, checks and prints enums by these lists, and `cox` offers the words to users. Each list ends with NULL; an
 * empty first word stands for a field that is not given, and is never offered.
 */
#ifndef COXSWAIN_JOB_ENUM_WORDS_H
#define COXSWAIN_JOB_ENUM_WORDS_H

#include "common/job/training_sweep.h"

#define WORD_LISTS(L)                                                                                                  \
    L(framework_words, FRAMEWORKS)                                                                                     \
    L(strategy_type_words, STRATEGY_TYPES)                                                                             \
    L(collective_type_words, COLLECTIVE_TYPES)                                                                         \
    L(parameter_server_mode_words, PARAMETER_SERVER_MODES)                                                             \
    L(device_type_words, DEVICE_TYPES)                                                                                 \
    L(data_format_words, DATA_FORMATS)                                                                                 \
    L(image_resize_words, IMAGE_RESIZES)                                                                               \
    L(data_missing_words, DATA_MISSINGS)                                                                               \
    L(optimizer_type_words, OPTIMIZER_TYPES)                                                                           \
    L(schedule_type_words, SCHEDULE_TYPES)                                                                             \
    L(scale_learning_rate_words, SCALE_LEARNING_RATES)                                                                 \
    L(precision_words, PRECISIONS)                                                                                     \
    L(determinism_words, DETERMINISMS)                                                                                 \
    L(layer_type_words, LAYER_TYPES)                                                                                   \
    L(batch_statistics_words, BATCH_STATISTICS)                                                                        \
    L(loss_words, LOSSES)                                                                                              \
    L(export_format_words, EXPORT_FORMATS)                                                                             \
    L(export_weights_words, EXPORT_WEIGHTS)                                                                            \
    L(export_names_words, EXPORT_NAMES)                                                                                \
    L(preset_words, PRESETS)                                                                                           \
    L(on_preemption_words, ON_PREEMPTIONS)                                                                             \
    L(clean_pod_policy_words, CLEAN_POD_POLICIES)                                                                      \
    L(restart_scope_words, RESTART_SCOPES)                                                                             \
    L(gang_scheduler_words, GANG_SCHEDULERS)                                                                           \
    L(failure_action_words, FAILURE_ACTIONS)                                                                           \
    L(exit_code_operator_words, EXIT_CODE_OPERATORS)                                                                   \
    L(pod_condition_status_words, POD_CONDITION_STATUSES)                                                              \
    L(training_class_kind_words, TRAINING_CLASS_KINDS)                                                                 \
    L(role_words, ROLES)                                                                                               \
    L(encryption_words, ENCRYPTIONS)                                                                                   \
    L(condition_type_words, CONDITION_TYPES)                                                                           \
    L(sweep_algorithm_words, SWEEP_ALGORITHMS)                                                                         \
    L(sweep_trial_state_words, SWEEP_TRIAL_STATES)                                                                     \
    L(early_stopping_type_words, EARLY_STOPPING_TYPES)                                                                 \
    L(early_stopping_action_words, EARLY_STOPPING_ACTIONS)                                                             \
    L(objective_value_words, OBJECTIVE_VALUES)                                                                         \
    L(integer_scale_words, INTEGER_SCALES)                                                                             \
    L(sweep_goal_words, SWEEP_GOALS)                                                                                   \
    L(sweep_condition_words, SWEEP_CONDITION_TYPES)

#define L(list, table) extern const char *const list[];
WORD_LISTS(L)
#undef L

/* The position of `word`, or -1 when it is none of them. */
int words_find(const char *const *words, const char *word);

#endif
