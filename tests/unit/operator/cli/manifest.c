/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/manifest.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/cox-manifest-XXXXXX";

static void write_file(const char *text)
{
    int descriptor = mkstemp(path);
    cr_assert_geq(descriptor, 0);
    cr_assert_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
}

static void check_refused(const char *text, const char *words)
{
    struct manifest manifest;
    struct error error = ERROR_INIT;
    write_file(text);
    const struct manifest_request request = {.path = path, .default_namespace = "default"};
    int result = manifest_read(&request, &manifest, &error);
    unlink(path);
    cr_assert_lt(result, 0);
    cr_assert(strstr(error.message, words), "%s", error.message);
    cr_assert(strstr(error.message, path), "the file is named: %s", error.message);
}

#define JOB "apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\nmetadata: {name: a}\n"

Test(manifest, the_job_among_other_documents)
{
    struct manifest manifest;
    write_file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n" JOB);
    const struct manifest_request request = {.path = path, .default_namespace = "lab"};
    cr_assert_eq(manifest_read(&request, &manifest, NULL), 0);
    unlink(path);
    cr_assert_eq(json_count(manifest.documents), 2);
    cr_assert_str_eq(manifest.name, "a");
    cr_assert_str_eq(manifest.name_space, "lab");
    manifest_release(&manifest);
}

/* Otherwise the second job would write over the weights of the first. */
Test(manifest, paths_that_begin_with_the_name_follow_it)
{
    struct manifest manifest;
    static const char *const settings[] = {"metadata.name=b", "spec.coxswain.checkpoint.path=a"};
    write_file(JOB "spec: {coxswain: {export: {path: a/model.safetensors}, checkpoint: {path: a}}}\n");
    const struct manifest_request request = {
        .path = path, .default_namespace = "lab", .settings = settings, .setting_count = 2};
    cr_assert_eq(manifest_read(&request, &manifest, NULL), 0);
    unlink(path);
    cr_expect_str_eq(manifest.name, "b");
    cr_expect_str_eq(json_string_at(manifest.job, "spec.coxswain.export.path", ""), "b/model.safetensors");
    cr_expect_str_eq(json_string_at(manifest.job, "spec.coxswain.checkpoint.path", ""), "a", "it was set");
    manifest_release(&manifest);
}

Test(manifest, a_sweep_by_a_metric_that_its_trials_lack_is_refused)
{
    check_refused("apiVersion: coxswain.dev/v1beta1\nkind: TrainingSweep\nmetadata: {name: a}\n"
                  "spec: {objective: {metric: los}, template: {coxswain: {}}}\n",
                  "(did you mean \"loss\"?)");
}

/* Claims of the class are directories of the run as well. */
Test(manifest, a_class_in_the_file_is_part_of_what_runs)
{
    struct manifest manifest;
    write_file("apiVersion: coxswain.dev/v1beta1\nkind: ClusterTrainingClass\nmetadata: {name: small}\n"
               "spec: {storage: [{name: runs, persistentVolumeClaim: {claimName: runs}}]}\n"
               "---\napiVersion: coxswain.dev/v1beta1\nkind: TrainingClass\nmetadata: {name: small}\n"
               "spec: {image: other}\n---\n" JOB "spec: {trainingClass: {name: small}, jax: {}}\n");
    const struct manifest_request request = {.path = path, .default_namespace = "lab"};
    cr_assert_eq(manifest_read(&request, &manifest, NULL), 0);
    unlink(path);
    cr_expect_str_eq(json_string_at(json_first(json_at(manifest.effective, "spec.storage")), "name", ""), "runs");
    cr_expect_null(json_at(manifest.effective, "spec.image"));
    cr_expect_null(json_at(manifest.job, "spec.storage"), "the class stays the class's");
    manifest_release(&manifest);
}

Test(manifest, without_a_job)
{
    check_refused("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "no TrainingJob");
}

Test(manifest, with_a_mistyped_kind)
{
    check_refused("apiVersion: coxswain.dev/v1beta1\nkind: TrainigJob\nmetadata: {name: a}\n",
                  "kind: TrainigJob; did you mean TrainingJob?");
}

Test(manifest, with_a_mistyped_kind_behind_another_document)
{
    check_refused("apiVersion: v1\nkind: Secret\nmetadata: {name: c}\n---\n"
                  "apiVersion: coxswain.dev/v1beta1\nkind: trainingsweeps\nmetadata: {name: a}\n",
                  "kind: trainingsweeps; did you mean TrainingSweep?");
}

Test(manifest, with_a_job_of_another_kind)
{
    check_refused("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n", "it holds a Job (batch/v1) and no");
}

Test(manifest, reads_an_earlier_version)
{
    check_refused("apiVersion: coxswain.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\n",
                  "apiVersion: coxswain.dev/v1alpha1 is not served, only coxswain.dev/v1beta1; `cox migrate FILE`");
}

Test(manifest, with_two_jobs)
{
    check_refused(JOB "---\n" JOB, "more than one");
}

Test(manifest, without_a_name)
{
    check_refused("apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\n", "no metadata.name");
}

Test(manifest, that_is_no_yaml)
{
    check_refused("kind: TrainingJob\nspec: {a: [1\nb: 2\n", "line 3");
}

Test(manifest, that_is_no_object)
{
    check_refused("- 1\n- 2\n", "no apiVersion");
}

Test(manifest, settings_change_the_job_alone_and_may_name_it)
{
    static const char *const settings[] = {"metadata.name=b", "metadata.namespace=lab", "spec.workers.replicas=3"};
    const struct manifest_request request = {
        .path = path, .default_namespace = "default", .settings = settings, .setting_count = 3};
    struct manifest manifest;
    write_file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n" JOB);
    cr_assert_eq(manifest_read(&request, &manifest, NULL), 0);
    unlink(path);
    cr_assert_str_eq(manifest.name, "b");
    cr_assert_str_eq(manifest.name_space, "lab");
    cr_assert_eq(json_integer_at(manifest.job, "spec.workers.replicas", 0), 3);
    cr_assert_str_eq(json_string_at(json_first(manifest.documents), "metadata.name", ""), "c");
    manifest_release(&manifest);
}

static void expect_refused_setting(const char *setting, const char *words)
{
    const struct manifest_request request = {
        .path = path, .default_namespace = "default", .settings = &setting, .setting_count = 1};
    struct manifest manifest;
    struct error error = ERROR_INIT;
    write_file(JOB);
    cr_assert_lt(manifest_read(&request, &manifest, &error), 0);
    unlink(path);
    cr_assert(strstr(error.message, words), "%s", error.message);
}

Test(manifest, a_setting_that_does_not_fit)
{
    expect_refused_setting("spec.wrokers=3",
                           "--set: spec.wrokers: there is no field wrokers; did you mean workers? The fields are ");
}

Test(manifest, a_sweep_with_a_path_that_no_job_has)
{
    check_refused("apiVersion: coxswain.dev/v1beta1\nkind: TrainingSweep\nmetadata: {name: a}\n"
                  "spec: {parameters: [{path: coxswain.training.step, values: [1]}]}\n",
                  "spec.parameters[0].path: coxswain.training.step: there is no field step; did you mean steps?");
}

Test(manifest, a_setting_that_takes_the_name_away)
{
    expect_refused_setting("metadata.name=null", "no metadata.name");
}

Test(manifest, a_job_of_kubeflow_is_named_with_what_helps)
{
    check_refused("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\n",
                  "it holds a PyTorchJob (kubeflow.org/v1); `cox migrate FILE` translates it to a TrainingJob");
}

Test(manifest, a_job_of_kubeflow_trainer_too)
{
    check_refused(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: a}\n",
        "it holds a TrainJob (trainer.kubeflow.org/v1alpha1); `cox migrate FILE` translates it to a TrainingJob");
}

Test(manifest, a_job_that_is_not_translated_is_named_with_the_page_that_helps)
{
    check_refused("apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: a}\n",
                  "it holds a MPIJob (kubeflow.org/v2beta1); write it as a TrainingJob (docs/migration.md");
}

Test(manifest, what_is_there_instead_is_named)
{
    check_refused("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
                  "it holds a Pod (v1) and no TrainingJob or TrainingSweep");
}

#define SWEEP "apiVersion: coxswain.dev/v1beta1\nkind: TrainingSweep\nmetadata: {name: s}\nspec: {template: {}}\n"

Test(manifest, a_sweep)
{
    static const char *const settings[] = {"spec.template.coxswain.training.steps=9", "spec.parallelism=2"};
    const struct manifest_request request = {
        .path = path, .default_namespace = "lab", .settings = settings, .setting_count = 2};
    struct manifest manifest;
    write_file(SWEEP);
    cr_assert_eq(manifest_read(&request, &manifest, NULL), 0);
    unlink(path);
    cr_expect(manifest.is_sweep);
    cr_expect_str_eq(manifest.name, "s");
    cr_expect_str_eq(manifest.name_space, "lab");
    cr_expect_eq(json_integer_at(manifest.job, "spec.template.coxswain.training.steps", 0), 9);
    cr_expect_eq(json_integer_at(manifest.job, "spec.parallelism", 0), 2);
    manifest_release(&manifest);
}

#define TEMPLATE(text)                                                                                                 \
    "apiVersion: coxswain.dev/v1beta1\nkind: TrainingSweep\nmetadata: {name: s}\nspec: {template: " text "}\n"

Test(manifest, a_sweep_whose_template_has_a_field_that_no_job_has)
{
    check_refused(TEMPLATE("{coxswian: {strategy: {type: OneDevice}}}"),
                  ": unknown field \"spec.template.coxswian\"; did you mean spec.template.coxswain?");
}

Test(manifest, a_sweep_whose_template_has_several_of_them)
{
    check_refused(TEMPLATE("{workers: {replica: 2}, storage: [{name: a}, {nam: b}], elephant: 1}"),
                  ": unknown field \"spec.template.workers.replica\", unknown field "
                  "\"spec.template.storage[1].nam\", unknown field \"spec.template.elephant\"; did you mean "
                  "spec.template.workers.replicas, spec.template.storage[1].name?");
}

Test(manifest, what_is_within_the_pods_of_a_sweep_is_left_to_the_cluster)
{
    struct manifest manifest;
    write_file(
        TEMPLATE("{workers: {template: {spec: {elephant: 1}}}, storage: [{name: a, nfs: {sever: b}}], chief: }"));
    const struct manifest_request request = {.path = path, .default_namespace = "lab"};
    cr_expect_eq(manifest_read(&request, &manifest, NULL), 0);
    unlink(path);
    manifest_release(&manifest);
}

Test(manifest, a_sweep_and_a_job)
{
    check_refused(SWEEP "---\n" JOB, "it holds more than one TrainingJob or TrainingSweep; run them one by one");
}

Test(manifest, a_sweep_of_another_version)
{
    check_refused("apiVersion: coxswain.dev/v1\nkind: TrainingSweep\nmetadata: {name: a}\n",
                  "apiVersion: coxswain.dev/v1 is not served, only coxswain.dev/v1beta1");
}

static void expect_near(const char *name, const char *message)
{
    struct error error = ERROR_INIT;
    struct json *documents = NULL;
    cr_assert_eq(manifest_documents(name, &documents, &error), -1);
    cr_expect_str_eq(error.message, message, "%s", error.message);
}

static void make_file(const char *name)
{
    FILE *file = fopen(name, "w");
    cr_assert_not_null(file);
    fclose(file);
}

Test(manifest, a_file_that_is_not_there_has_a_near_name)
{
    char folder[] = "/tmp/cox-near-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
    make_file("digits.yaml");
    make_file("digits.csv");
    expect_near("digist.yaml", "cannot open digist.yaml: No such file or directory; did you mean digits.yaml?");
    expect_near("digits", "cannot open digits: No such file or directory; did you mean digits.yaml?");
    expect_near("./digit.yml", "cannot open ./digit.yml: No such file or directory; did you mean ./digits.yaml?");
    expect_near("other.yaml", "cannot open other.yaml: No such file or directory");
    expect_near("none/digits.yaml", "cannot open none/digits.yaml: No such file or directory");
    cr_expect_eq(unlink("digits.yaml") + unlink("digits.csv") + chdir("/") + rmdir(folder), 0);
}
