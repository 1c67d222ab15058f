/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/migration.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/yaml.h"

#define CEILING (1 << 20)

static struct json *parse(const char *text)
{
    struct json *documents = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(yaml_parse(text, strlen(text), CEILING, &documents, &error), 0, "%s\n%s", error.message, text);
    return documents;
}

/* What `before`, a manifest, becomes, and the notes, a line each. */
static void check(const char *before, const char *after, const char *lines)
{
    SCOPED_JSON *documents = parse(before);
    SCOPED_JSON *expected = parse(after);
    SCOPED_JSON *job = NULL;
    SCOPED_JSON *notes = json_new_array();
    SCOPED_BUFFER text;
    SCOPED_BUFFER said;
    buffer_init(&text, CEILING);
    buffer_init(&said, CEILING);
    cr_assert(migration_translate(json_first(documents), &job, notes), "%s", before);
    cr_assert_eq(yaml_print(job, &text, NULL), 0);
    cr_expect(json_equal(job, json_first(expected)), "%s\nbecame\n%s", before, buffer_text(&text));
    for (const struct json *note = json_first(notes); note; note = json_next(note))
        buffer_format(&said, "%s: %s\n", json_string_at(note, "field", ""), json_string_at(note, "message", ""));
    cr_expect_str_eq(buffer_text(&said), lines, "%s\nsaid\n%s", before, buffer_text(&said));
}

/* ---------------------------------------------------------------- v1alpha1 */

#define OLD "apiVersion: coxswain.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\nspec:\n"
#define NEW "apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\nmetadata: {name: a}\nspec:\n"
#define OLD_COXSWAIN                                                                                                   \
    "  model: {preset: mlp}\n  data: {format: synthetic, examples: 9}\n  training: {steps: 5, batchSize: 4}\n"
#define NEW_MODEL "    model: {preset: mlp}\n    data: {format: Synthetic, examples: 9}\n"
#define NEW_COXSWAIN NEW_MODEL "    training: {steps: 5, batchSize: 4}\n"
#define NEW_STRATEGY "  coxswain:\n    strategy: {type: MultiWorkerMirrored}\n"
#define MIRRORED "  strategy: {type: MultiWorkerMirrored}\n"

Test(migration, of_v1alpha1)
{
    static const struct {
        const char *before, *after, *lines;
    } cases[] = {
        {OLD MIRRORED "  workers: 2\n" OLD_COXSWAIN, NEW "  workers: {replicas: 2}\n" NEW_STRATEGY NEW_COXSWAIN, ""},
        {OLD MIRRORED "  framework: Coxswain\n  image: i\n  workers: 2\n  elastic: {minWorkers: 1, maxWorkers: 3}\n"
                      "  encryption: TLS\n  devices: {type: cpu}\n" OLD_COXSWAIN,
         NEW "  image: i\n  workers: {replicas: 2, minReplicas: 1, maxReplicas: 3}\n  devices: {type: CPU}\n" //
         NEW_STRATEGY NEW_COXSWAIN "    encryption: {type: TLS}\n",
         ""},
        /* words, in lists as well */
        {OLD MIRRORED
         "  model: {inputShape: [4], loss: softmaxCrossEntropy, layers: [{type: dense, units: 2}, {type: relu}]}\n"
         "  data: {format: idx, train: {images: /a, labels: /b}}\n"
         "  training: {steps: 5, batchSize: 4, precision: bfloat16,\n"
         "    optimizer: {type: adamw, learningRate: \"2e-3\", schedule: {type: cosine}}}\n",
         NEW NEW_STRATEGY
         "    model: {inputShape: [4], loss: SoftmaxCrossEntropy, layers: [{type: Dense, units: 2}, {type: ReLU}]}\n"
         "    data: {format: IDX, train: {images: /a, labels: /b}}\n"
         "    training: {steps: 5, batchSize: 4, precision: BFloat16,\n"
         "      optimizer: {type: AdamW, learningRate: \"2e-3\", schedule: {type: Cosine}}}\n",
         ""},
        /* files and times */
        {OLD MIRRORED
         "  storage: [{name: runs, emptyDir: {}}]\n  init: {from: \"runs:a:b\"}\n"
         "  checkpoint: {storage: runs, every: 2m, keep: 2}\n"
         "  export: {storage: runs, to: w, format: safetensors}\n  evaluate: {everySteps: 3}\n" OLD_COXSWAIN,
         NEW "  storage: [{name: runs, emptyDir: {}}]\n" NEW_STRATEGY NEW_COXSWAIN
             "    init: {storage: runs, path: \"a:b\"}\n"
             "    checkpoint: {storage: runs, keep: 2, everySeconds: 120}\n"
             "    export: {storage: runs, path: w, format: Safetensors}\n    evaluation: {everySteps: 3}\n",
         ""},
        {OLD MIRRORED "  storage: [{name: runs, emptyDir: {}}]\n  init: {from: /w:1}\n"
                      "  checkpoint: {storage: runs, every: 200}\n" OLD_COXSWAIN,
         NEW "  storage: [{name: runs, emptyDir: {}}]\n" NEW_STRATEGY NEW_COXSWAIN
             "    init: {path: \"/w:1\"}\n    checkpoint: {storage: runs, everySteps: 200}\n",
         ""},
        {OLD MIRRORED
         "  storage: [{name: runs, emptyDir: {}}]\n  checkpoint: {storage: runs, every: often}\n" OLD_COXSWAIN,
         NEW "  storage: [{name: runs, emptyDir: {}}]\n" NEW_STRATEGY NEW_COXSWAIN "    checkpoint: {storage: runs}\n",
         "spec.checkpoint.every: left out: it is no time; write coxswain.checkpoint.everySeconds\n"},
        /* roles */
        {OLD "  strategy: {type: ParameterServer, psBackup: true}\n  workers: 2\n"
             "  roles: [{name: ps, count: 2}, {name: chief, count: 1, template: {spec: {}}}, {name: worker, template: "
             "{spec: {}}},\n"
             "    {name: boss}]\n" OLD_COXSWAIN,
         NEW "  workers: {replicas: 2, template: {spec: {}}}\n  parameterServers: {replicas: 2}\n"
             "  chief: {template: {spec: {}}}\n  coxswain:\n    strategy: {type: ParameterServer}\n" NEW_COXSWAIN,
         "spec.roles[3].name: left out: a TrainingJob has the roles chief, worker, ps and evaluator\n"
         "spec.strategy.psBackup: left out: a ps that dies is restored from the newest checkpoint; save more often, or "
         "take mode Synchronous\n"},
        {OLD MIRRORED "  runPolicy: {suspend: true, managedBy: a.b/c, backoffLimit: 2, gang: {scheduler: volcano}}\n" //
         OLD_COXSWAIN,
         NEW "  suspend: true\n  managedBy: a.b/c\n  runPolicy: {backoffLimit: 2, gang: {scheduler: Volcano}}\n" //
         NEW_STRATEGY NEW_COXSWAIN,
         ""},
        /* what is gone */
        {OLD "  strategy: {type: PeerToPeer, exchange: Gossip}\n  workers: 2\n" OLD_COXSWAIN
             "  colour: {of: red, to: null}\n",
         NEW "  workers: {replicas: 2}\n  coxswain:\n    strategy: {type: PeerToPeer}\n" NEW_COXSWAIN,
         "spec.strategy.exchange: left out: each worker sends its updates to all others\n"
         "spec.colour.of: left out: a TrainingJob has no such field\n"},
        {OLD "  strategy: {type: PeerToPeer, exchange: SendToAll, fred: 1}\n  workers: 2\n"
             "  model: {inputShape: [4], layers: [{type: dense, units: 2, wide: [1]}]}\n"
             "  data: {format: synthetic, examples: 9}\n"
             "  training: {steps: 5, batchSize: 4, weightRounding: Stochastic}\n",
         NEW
         "  workers: {replicas: 2}\n  coxswain:\n    strategy: {type: PeerToPeer}\n"
         "    model: {inputShape: [4], layers: [{type: Dense, units: 2}]}\n    data: {format: Synthetic, examples: 9}\n"
         "    training: {steps: 5, batchSize: 4}\n",
         "spec.training.weightRounding: left out: weights are rounded to the nearest\n"
         "spec.strategy.fred: left out: a TrainingJob has no such field\n"
         "spec.model.layers[0].wide: left out: a TrainingJob has no such field\n"},
        /* what no job may be like */
        {OLD "  strategy: {type: OneDevice}\n  workers: 2\n" OLD_COXSWAIN,
         NEW "  workers: {replicas: 2}\n  coxswain:\n    strategy: {type: OneDevice}\n" NEW_COXSWAIN,
         "spec.workers.replicas: OneDevice, Mirrored and CentralStorage have one worker; set replicas to 1 or take "
         "MultiWorkerMirrored\n"},
        {OLD MIRRORED "  framework: Theano\n" OLD_COXSWAIN, NEW NEW_STRATEGY NEW_COXSWAIN,
         "spec.framework: left out: there are Coxswain, PyTorch, TensorFlow and JAX\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i].before, cases[i].after, cases[i].lines);
}

Test(migration, of_v1alpha1_for_other_frameworks)
{
    check(OLD
          "  strategy: {type: ParameterServer, collective: Auto, mode: Async}\n  framework: TensorFlow\n  image: tf\n"
          "  encryption: None\n  storage: [{name: runs, emptyDir: {}}]\n"
          "  checkpoint: {storage: runs, path: p, everySteps: 3, keep: 3}\n"
          "  model: {preset: mlp}\n  roles: [{name: chief}, {name: ps}]\n",
          NEW "  image: tf\n  chief: {}\n  parameterServers: {}\n  storage: [{name: runs, emptyDir: {}}]\n"
              "  tensorflow: {checkpoint: {storage: runs, path: p}}\n",
          "spec.strategy.mode: left out: a TrainingJob of this framework has no such field\n"
          "spec.checkpoint.everySteps: left out: a TrainingJob of this framework has no such field\n"
          "spec.model.preset: left out: a TrainingJob of this framework has no such field\n");
    check(OLD "  strategy: {type: MultiWorkerMirrored}\n  framework: JAX\n", NEW "  jax: {}\n",
          "spec.image: jobs of pytorch, tensorflow and jax need an image; name the one to run\n");
}

Test(migration, what_a_server_wrote_is_dropped)
{
    check("apiVersion: coxswain.dev/v1alpha1\nkind: TrainingJob\n"
          "metadata: {name: a, namespace: n, labels: {l: m}, uid: u, resourceVersion: \"1\", generation: 1,\n"
          "  creationTimestamp: t, managedFields: [], annotations: {kubectl.kubernetes.io/last-applied-configuration: "
          "x}}\n"
          "spec:\n" MIRRORED "  training: {steps: 5, batchSize: 4, weightRounding: Nearest}\n"
          "  model: {preset: mlp}\n  data: {format: synthetic, examples: 9}\nstatus: {state: Running}\n",
          "apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\n"
          "metadata: {name: a, namespace: n, labels: {l: m}}\nspec:\n" NEW_STRATEGY NEW_COXSWAIN,
          "");
}

Test(migration, a_name_that_is_too_long)
{
    check("apiVersion: coxswain.dev/v1alpha1\nkind: TrainingJob\n"
          "metadata: {name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddx}\nspec:\n" MIRRORED OLD_COXSWAIN,
          "apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\n"
          "metadata: {name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddx}\nspec:\n" NEW_STRATEGY NEW_COXSWAIN,
          "metadata.name: the name must be at most 40 lower-case letters, digits and '-', begin with a letter and end "
          "with a letter or digit\n");
}

static void check_untouched(const char *document, const char *lines)
{
    SCOPED_JSON *documents = parse(document);
    SCOPED_JSON *notes = json_new_array();
    struct json *job = NULL;
    cr_expect(!migration_translate(json_first(documents), &job, notes), "%s", document);
    cr_expect_str_eq(json_string_at(json_first(notes), "message", ""), lines);
}

Test(migration, other_documents_stay)
{
    check_untouched("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "");
    check_untouched(NEW "  pytorch: {}\n", "");
    check_untouched("just text", "");
}
