/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/migration.h"

#include <criterion/criterion.h>
#include <stdio.h>
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
    SCOPED_BUFFER text = BUFFER_INIT(CEILING);
    SCOPED_BUFFER said = BUFFER_INIT(CEILING);
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
         "spec.checkpoint.every: left out: it is not a duration; write coxswain.checkpoint.everySeconds\n"},
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

/* ---------------------------------------------------------------- Kubeflow */

#define KUBEFLOW(kind) "apiVersion: kubeflow.org/v1\nkind: " kind "\nmetadata: {name: a}\nspec:\n"
#define TORCH(more) "template: {spec: {containers: [{name: pytorch, image: i" more "}]}}"
#define MASTER_AND_WORKERS                                                                                             \
    "  pytorchReplicaSpecs:\n    Master: {replicas: 1, restartPolicy: OnFailure, " TORCH(                              \
        "") "}\n"                                                                                                      \
            "    Worker: {replicas: 3, restartPolicy: Always, " TORCH("") "}\n"
#define WORKERS(number, more) "  pytorchReplicaSpecs: {Worker: {replicas: " number ", " TORCH(more) "}}\n"
#define TRAINER(more) "template: {spec: {containers: [{name: trainer" more "}]}}"
#define NEW_WORKERS(number, more) "  image: i\n  workers: {replicas: " number ", " TRAINER(more) "}\n  pytorch: {}\n"

Test(migration, of_a_pytorch_job)
{
    static const struct {
        const char *before, *after, *lines;
    } cases[] = {
        {KUBEFLOW("PyTorchJob") "  runPolicy: {backoffLimit: 3, cleanPodPolicy: None}\n" MASTER_AND_WORKERS,
         NEW NEW_WORKERS("4", "") "  runPolicy: {backoffLimit: 3, cleanPodPolicy: None}\n", ""},
        /* the master needs another template, and keeps its image */
        {KUBEFLOW("PyTorchJob") "  pytorchReplicaSpecs:\n    master: {" TORCH(
             ", env: [{name: M, value: m}]") "}\n"
                                             "    worker: {replicas: 3, template: {spec: {containers: [{name: proxy, "
                                             "image: p}, {name: pytorch, image: j,\n"
                                             "      ports: [{name: pytorchjob-port, containerPort: 7}]}]}}}\n",
         NEW "  image: j\n  chief: {" TRAINER(
             ", image: i, env: [{name: M, value: m}]") "}\n"
                                                       "  workers: {replicas: 3, template: {spec: {containers: [{name: "
                                                       "proxy, image: p}, {name: trainer,\n"
                                                       "    ports: [{name: crew, containerPort: 7}]}]}}}\n  pytorch: "
                                                       "{}\n",
         ""},
        {KUBEFLOW("PyTorchJob") "  pytorchReplicaSpecs: {Master: {" TORCH("") "}, Worker: {replicas: 0}}\n",
         NEW NEW_WORKERS("1", ""), ""},
        /* bounds */
        {KUBEFLOW("PyTorchJob") "  elasticPolicy: {minReplicas: 1, maxReplicas: 4, rdzvBackend: c10d, standalone: "
                                "false}\n" //
         WORKERS("2", ""),
         NEW "  image: i\n  workers: {replicas: 2, minReplicas: 1, maxReplicas: 4, " TRAINER("") "}\n  pytorch: {}\n",
         ""},
        {KUBEFLOW("PyTorchJob") "  elasticPolicy: {minReplicas: 1, maxReplicas: 3}\n" MASTER_AND_WORKERS,
         NEW "  image: i\n  workers: {replicas: 4, minReplicas: 2, maxReplicas: 4, " TRAINER("") "}\n  pytorch: {}\n",
         ""},
        {KUBEFLOW("PyTorchJob") "  elasticPolicy: {maxRestarts: 5}\n" WORKERS("2", ""),
         NEW "  image: i\n  workers: {replicas: 2, minReplicas: 2, maxReplicas: 2, " //
         TRAINER(", env: [{name: PET_MAX_RESTARTS, value: \"5\"}]") "}\n  pytorch: {}\n",
         ""},
        {KUBEFLOW(
             "PyTorchJob") "  elasticPolicy: {minReplicas: 2, rdzvBackend: etcd, rdzvId: r, rdzvHost: h, rdzvPort: 1,\n"
                           "    rdzvConf: [{key: k, value: v}], standalone: true, metrics: [{type: Resource}]}\n" //
         WORKERS("2", ", env: [{name: PET_RDZV_ID, value: mine}]"),
         NEW "  image: i\n  workers: {replicas: 2, minReplicas: 2, maxReplicas: 2, " //
         TRAINER(
             ", env: [{name: PET_RDZV_ID, value: mine}, {name: PET_RDZV_BACKEND, value: etcd}]") "}\n  pytorch: {}\n",
         "spec.elasticPolicy.rdzvPort: left out: the operator sets the rendezvous; its port is a containerPort named "
         "crew\n"
         "spec.elasticPolicy.rdzvHost: left out: the operator sets the rendezvous, at the chief or worker 0\n"
         "spec.elasticPolicy.rdzvConf: left out: set PET_RDZV_CONF to key=value,… in the template\n"
         "spec.elasticPolicy.standalone: left out: set PET_STANDALONE to 1 in the template\n"
         "spec.elasticPolicy.metrics: left out: create a HorizontalPodAutoscaler for the job's scale subresource\n"},
        /* fields and roles that are in no table */
        {KUBEFLOW("PyTorchJob") "  colour: red\n  runPolicy: {colour: red}\n"
                                "  pytorchReplicaSpecs: {Worker: {colour: red, " TORCH(
                                    "") "}, Sidekick: {replicas: 2}}\n",
         NEW NEW_WORKERS("1", ""),
         "spec.pytorchReplicaSpecs.Worker.colour: left out: a TrainingJob has no such field\n"
         "spec.pytorchReplicaSpecs.Sidekick.replicas: left out: there is no place for this role\n"
         "spec.runPolicy.colour: left out: a TrainingJob has no such field\n"
         "spec.colour: left out: a TrainingJob has no such field\n"},
        {KUBEFLOW("PyTorchJob") "  colour: red\n", NEW "  pytorch: {}\n",
         "spec.colour: left out: a TrainingJob has no such field\n"
         "spec.image: jobs of pytorch, tensorflow and jax need an image; name the one to run\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i].before, cases[i].after, cases[i].lines);
}

/* What `processes`, fields of the spec, and the container's resources become. */
static void check_processes(const char *processes, const char *resources, const char *devices, const char *container)
{
    char before[1024], after[1024];
    snprintf(before, sizeof before, KUBEFLOW("PyTorchJob") "%s" WORKERS("2", "%s"), processes, resources);
    snprintf(after, sizeof after, NEW NEW_WORKERS("2", "%s") "%s", container, devices);
    check(before, after, "");
}

#define TWO_GPUS ", resources: {limits: {nvidia.com/gpu: 2}}"
#define TOLD(word) ", env: [{name: PET_NPROC_PER_NODE, value: " word "}]"

Test(migration, processes_of_a_pytorch_job)
{
    check_processes("  nprocPerNode: \"4\"\n", "", "  devices: {count: 4}\n", "");
    check_processes("  nprocPerNode: \"1\"\n", "", "", "");
    check_processes("  nprocPerNode: auto\n", "", "", TOLD("auto"));
    check_processes("", TWO_GPUS, "  devices: {type: GPU, count: 2}\n", "");
    check_processes("  nprocPerNode: gpu\n",
                    ", resources: {limits: {amd.com/gpu: \"2\", cpu: 4}, requests: {amd.com/gpu: 2}}",
                    "  devices: {type: GPU, count: 2, resourceName: amd.com/gpu}\n", ", resources: {limits: {cpu: 4}}");
    check_processes("  nprocPerNode: \"2\"\n", TWO_GPUS, "  devices: {type: GPU, count: 2}\n", "");
    check_processes("  nprocPerNode: \"8\"\n", TWO_GPUS, "  devices: {count: 8}\n", TWO_GPUS);
    check_processes("  nprocPerNode: cpu\n", TWO_GPUS, "", TWO_GPUS TOLD("cpu"));
    check(KUBEFLOW("PyTorchJob") "  elasticPolicy: {nProcPerNode: 2}\n" WORKERS("1", ""),
          NEW "  image: i\n  devices: {count: 2}\n  workers: {replicas: 1, minReplicas: 1, maxReplicas: 1, " TRAINER(
              "") "}\n"
                  "  pytorch: {}\n",
          "");
    check(KUBEFLOW("PyTorchJob") "  pytorchReplicaSpecs: {Master: {" TORCH("") "}, Worker: {" TORCH(TWO_GPUS) "}}\n",
          NEW "  image: i\n  chief: {" TRAINER(TOLD("auto")) "}\n  workers: {replicas: 1, " //
          TRAINER(TWO_GPUS TOLD("auto")) "}\n  pytorch: {}\n",
          "");
}

Test(migration, of_restart_policies)
{
#define POLICIES(master, worker)                                                                                       \
    "  pytorchReplicaSpecs:\n    Master: {restartPolicy: " master ", " TORCH("") "}\n"                                 \
                                                                                 "    Worker: {restartPolicy: " worker \
                                                                                 ", " TORCH("") "}\n"
#define LIMIT "  runPolicy: {backoffLimit: 3}\n"
    check(KUBEFLOW("PyTorchJob") POLICIES("Never", "Never"),
          NEW NEW_WORKERS("2", "") "  runPolicy: {backoffLimit: 0}\n", "");
    check(KUBEFLOW("PyTorchJob") LIMIT POLICIES("Never", "Never"),
          NEW NEW_WORKERS("2", "") "  runPolicy: {backoffLimit: 0}\n",
          "spec.runPolicy.backoffLimit: left out: restartPolicy Never means 0\n");
    check(
        KUBEFLOW("PyTorchJob") LIMIT POLICIES("Never", "OnFailure"), NEW NEW_WORKERS("2", "") LIMIT,
        "spec.pytorchReplicaSpecs.*.restartPolicy: left out: the roles differ in it; here all pods are replaced, up to "
        "runPolicy.backoffLimit\n");
    check(KUBEFLOW("PyTorchJob") LIMIT POLICIES("ExitCode", "ExitCode"), NEW NEW_WORKERS("2", "") LIMIT,
          "spec.pytorchReplicaSpecs.*.restartPolicy: left out: here exit codes from 1 to 127 count for "
          "runPolicy.backoffLimit, too; to fail at once write runPolicy.failurePolicy.rules\n");
    /* Kubeflow's default for JAX, which a limit contradicts */
    check(KUBEFLOW("JAXJob") "  jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: i}]}}}}\n",
          NEW "  image: i\n  workers: {replicas: 1, " TRAINER("") "}\n  jax: {}\n  runPolicy: {backoffLimit: 0}\n", "");
    check(KUBEFLOW("JAXJob") LIMIT
          "  jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: i}]}}}}\n",
          NEW "  image: i\n  workers: {replicas: 1, " TRAINER("") "}\n  jax: {}\n" LIMIT, "");
}

Test(migration, of_a_run_policy)
{
    check(KUBEFLOW("PyTorchJob") "  runPolicy: {suspend: true, managedBy: kubeflow.org/training-operator,\n"
                                 "    ttlSecondsAfterFinished: 5, activeDeadlineSeconds: 6, cleanPodPolicy: All,\n"
                                 "    schedulingPolicy: {minAvailable: 2, queue: q, priorityClass: high,\n"
                                 "      minResources: {cpu: 3}, scheduleTimeoutSeconds: 4}}\n" WORKERS("2", ""),
          NEW "  suspend: true\n" NEW_WORKERS("2", "") //
          "  runPolicy: {ttlSecondsAfterFinished: 5, activeDeadlineSeconds: 6, cleanPodPolicy: All,\n"
          "    gang: {scheduler: Volcano, minAvailable: 2, queue: q}, priorityClassName: high}\n",
          "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds: left out: only Coscheduling has such a time\n"
          "spec.runPolicy.schedulingPolicy.minResources.cpu: left out: the operator adds up what the pods request\n");
    check(KUBEFLOW("PyTorchJob") "  runPolicy: {managedBy: kueue.x-k8s.io/multikueue,\n"
                                 "    schedulingPolicy: {minAvailable: 2, queue: \"\", scheduleTimeoutSeconds: 4}}\n" //
          WORKERS("2", ""),
          NEW "  managedBy: kueue.x-k8s.io/multikueue\n" NEW_WORKERS("2", "") //
          "  runPolicy: {gang: {scheduler: Coscheduling, minAvailable: 2, scheduleTimeoutSeconds: 4}}\n",
          "");
    check(KUBEFLOW("PyTorchJob") "  runPolicy: {schedulingPolicy: {minAvailable: 2}}\n" WORKERS("2", ""),
          NEW NEW_WORKERS("2", ""),
          "spec.runPolicy.schedulingPolicy.minAvailable: left out: set spec.runPolicy.gang.minAvailable, and "
          "gang.scheduler to the scheduler you use\n");
    check(KUBEFLOW("PyTorchJob") "  runPolicy: {schedulingPolicy: {minAvailable: 1}}\n"
                                 "  pytorchReplicaSpecs: {Worker: {template: {spec: {schedulerName: volcano,\n"
                                 "    containers: [{name: pytorch, image: i}]}}}}\n",
          NEW "  image: i\n  workers: {replicas: 1, template: {spec: {schedulerName: volcano,\n"
              "    containers: [{name: trainer}]}}}\n  pytorch: {}\n"
              "  runPolicy: {gang: {scheduler: Volcano, minAvailable: 1}}\n",
          "");
}

#define TF(image) "restartPolicy: OnFailure, template: {spec: {containers: [{name: tensorflow, image: " image "}]}}"

Test(migration, of_a_tensorflow_job)
{
    check(KUBEFLOW("TFJob") "  successPolicy: \"\"\n  enableDynamicWorker: false\n  tfReplicaSpecs:\n"
                            "    Chief: {" TF("i") "}\n    Worker: {replicas: 2, " TF(
                                "i") "}\n"
                                     "    PS: {replicas: 3, " TF("i") "}\n    Evaluator: {replicas: 2, " TF("e") "}\n",
          NEW "  image: i\n  workers: {replicas: 2, " TRAINER("") "}\n  chief: {" TRAINER(
              "") "}\n"
                  "  parameterServers: {replicas: 3, " TRAINER("") "}\n  evaluator: {" TRAINER(
                      ", image: e") "}\n"
                                    "  tensorflow: {}\n",
          "spec.tfReplicaSpecs.Evaluator: left out: all but one of its 2 replicas; there is one evaluator\n");
    check(KUBEFLOW("TFJob") "  successPolicy: AllWorkers\n  enableDynamicWorker: true\n"
                            "  tfReplicaSpecs: {Chief: {" TF("i") "}, Master: {replicas: 1}}\n",
          NEW "  image: i\n  workers: {replicas: 1, " TRAINER("") "}\n  tensorflow: {}\n",
          "spec.tfReplicaSpecs.Master.replicas: left out: there is no place for this role\n"
          "spec.successPolicy: left out: the job has succeeded once its chief, or worker 0, has ended with 0\n"
          "spec.enableDynamicWorker: left out: set workers.minReplicas and maxReplicas, which need parameterServers\n");
}

/* ---------------------------------------------------------------- Kubeflow Trainer */

#define NO_IMAGE "spec.image: jobs of pytorch, tensorflow and jax need an image; name the one to run\n"
#define TRAIN_JOB(runtime)                                                                                             \
    "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: a}\nspec:\n"                          \
    "  runtimeRef: {name: " runtime "}\n"
#define LOOK_UP(runtime)                                                                                               \
    "spec.runtimeRef: left out: look up the runtime with `kubectl get " runtime " -o yaml`, and write what the pods "  \
    "need of it into the new job"
#define TORCH_RUNTIME LOOK_UP("clustertrainingruntimes torch-distributed") "\n"
#define TRAIN(more) "  trainer: {image: i, numNodes: 2, " more "}\n"
#define NO_RESOURCES "resourcesPerNode: {}"
#define NEW_TWO(more) "  image: i\n  workers: {replicas: 2, " TRAINER(more) "}\n"

Test(migration, of_a_train_job)
{
    static const struct {
        const char *before, *after, *lines;
    } cases[] = {
        {TRAIN_JOB("torch-distributed") "  suspend: false\n  managedBy: "
                                        "trainer.kubeflow.org/trainjob-controller\n" TRAIN(
                                            "command: [torchrun, a.py], args: [--x], env: [{name: M, value: m}], "
                                            "resourcesPerNode: {limits: "
                                            "{nvidia.com/gpu: 2, memory: 8Gi}}"),
         NEW "  image: i\n  devices: {type: GPU, count: 2}\n  workers: {replicas: 2, " TRAINER(
             ", command: [torchrun, a.py], args: [--x], env: [{name: M, value: m}], resources: {limits: {memory: "
             "8Gi}}") "}\n  pytorch: {}\n",
         TORCH_RUNTIME},
        {TRAIN_JOB("jax-distributed") "  suspend: true\n  managedBy: kueue.x-k8s.io/multikueue\n"
                                      "  activeDeadlineSeconds: 60\n" TRAIN(
                                          "numProcPerNode: 1, resourcesPerNode: {limits: {cpu: 4}}"),
         NEW "  suspend: true\n  managedBy: kueue.x-k8s.io/multikueue\n" NEW_TWO(
             ", resources: {limits: {cpu: 4}}") "  jax: {}\n  runPolicy: {activeDeadlineSeconds: 60}\n",
         LOOK_UP("clustertrainingruntimes jax-distributed") "\n"},
        {TRAIN_JOB("jax-distributed") TRAIN("numProcPerNode: 2, " NO_RESOURCES),
         NEW NEW_TWO(", resources: {}") "  jax: {}\n",
         LOOK_UP("clustertrainingruntimes jax-distributed") "\n"
                                                            "spec.trainer.numProcPerNode: left out: only a job of "
                                                            "PyTorch starts several processes in a pod\n"},
        {TRAIN_JOB("my.tensorflow-2, kind: TrainingRuntime, apiGroup: trainer.kubeflow.org") TRAIN(NO_RESOURCES),
         NEW NEW_TWO(", resources: {}") "  tensorflow: {}\n", LOOK_UP("trainingruntimes my.tensorflow-2") "\n"},
        /* what the runtime has to say */
        {TRAIN_JOB("torch-distributed"), NEW "  workers: {replicas: 1, " TRAINER("") "}\n  pytorch: {}\n",
         LOOK_UP("clustertrainingruntimes torch-distributed") "; this job takes from it the image, the number of "
                                                              "nodes, the resources\n" NO_IMAGE},
        {TRAIN_JOB("house") TRAIN("command: [torchrun, a.py], " NO_RESOURCES),
         NEW NEW_TWO(", command: [torchrun, a.py], resources: {}") "  pytorch: {}\n",
         LOOK_UP("clustertrainingruntimes house") "\n"},
        {TRAIN_JOB("house") TRAIN("command: [python3, a.py], " NO_RESOURCES),
         NEW NEW_TWO(", command: [python3, a.py], resources: {}") "  pytorch: {}\n",
         LOOK_UP("clustertrainingruntimes house") "\nspec.runtimeRef.name: the name does not tell the framework, and "
                                                  "pytorch is assumed; write tensorflow or jax if the script uses one "
                                                  "of these\n"},
        {TRAIN_JOB("torchtune-llama3.2-1b") TRAIN("command: [tune, run], " NO_RESOURCES) //
         "  initializer: {dataset: {storageUri: \"hf://a/b\", secretRef: {name: s}}}\n",
         NEW NEW_TWO(", command: [tune, run], resources: {}") "  pytorch: {}\n",
         LOOK_UP("clustertrainingruntimes torchtune-llama3.2-1b") //
         "\nspec.trainer.command: Kubeflow adds to `tune run` the recipe, its configuration and the rendezvous; add "
         "them here\n"
         "spec.initializer.dataset.storageUri: left out: use storage[].download for hf:// and https://, storage[].s3 "
         "for s3://, else an init container\n"
         "spec.initializer.dataset.secretRef.name: left out: use storage[].download for hf:// and https://, "
         "storage[].s3 for s3://, else an init container\n"},
        {TRAIN_JOB("torch-distributed") "  trainer: {image: i, numNodes: 0, " NO_RESOURCES ", colour: red}\n",
         NEW "  image: i\n  workers: {replicas: 1, " TRAINER(", resources: {}") "}\n  pytorch: {}\n",
         TORCH_RUNTIME "spec.trainer.numNodes: left out: a TrainingJob has at least one worker\n"
                       "spec.trainer.colour: left out: a TrainingJob has no such field\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i].before, cases[i].after, cases[i].lines);
}

static void check_train_processes(const char *trainer, const char *devices, const char *container)
{
    char before[1024], after[1024];
    snprintf(before, sizeof before, TRAIN_JOB("torch-distributed") TRAIN("%s"), trainer);
    snprintf(after, sizeof after, NEW NEW_TWO("%s") "  pytorch: {}\n%s", container, devices);
    check(before, after, TORCH_RUNTIME);
}

Test(migration, processes_of_a_train_job)
{
#define CPUS(list, count) "resources: {" list ": {cpu: " count "}}"
#define CPUS_PER_NODE(list, count) "resourcesPerNode: {" list ": {cpu: " count "}}"
    check_train_processes("numProcPerNode: 3, " NO_RESOURCES, "  devices: {count: 3}\n", ", resources: {}");
    check_train_processes("numProcPerNode: auto, " NO_RESOURCES, "", ", resources: {}" TOLD("auto"));
    check_train_processes("numProcPerNode: cpu, " CPUS_PER_NODE("limits", "4"), "",
                          ", " CPUS("limits", "4") TOLD("\"4\""));
    check_train_processes(CPUS_PER_NODE("requests", "3500m"), "", ", " CPUS("requests", "3500m") TOLD("\"4\""));
    check_train_processes(CPUS_PER_NODE("requests", "\"1\""), "", ", " CPUS("requests", "\"1\""));
    check_train_processes(CPUS_PER_NODE("limits", "4e"), "", ", " CPUS("limits", "4e"));
    check_train_processes("resourcesPerNode: {limits: {cpu: 4, amd.com/gpu: 1}}",
                          "  devices: {type: GPU, count: 1, resourceName: amd.com/gpu}\n", ", " CPUS("limits", "4"));
    check_train_processes("numProcPerNode: 4, resourcesPerNode: {limits: {nvidia.com/gpu: 1}}",
                          "  devices: {count: 4}\n", ", resources: {limits: {nvidia.com/gpu: 1}}");
}

#define PATCHES "  runtimePatches:\n"
#define PATCH(more) "  - {manager: me, time: t, trainingRuntimeSpec: {template: " more "}}\n"

Test(migration, patches_of_a_runtime)
{
    /* Trainer 2.0 */
    check(
        TRAIN_JOB("torch-distributed") TRAIN(NO_RESOURCES) //
        "  labels: {l: m}\n  annotations: {}\n  podSpecOverrides:\n"
        "  - {targetJobs: [{name: model-initializer}, {name: node}], serviceAccountName: s, nodeSelector: {n: a, m: "
        "a},\n"
        "     containers: [{name: proxy, env: [{name: E}]}, {name: node, volumeMounts: [{name: v, mountPath: /v}]}],\n"
        "     volumes: [{name: v, emptyDir: {}}], initContainers: [{name: first}]}\n"
        "  - {targetJobs: [{name: node}], nodeSelector: {n: b}}\n"
        "  - {targetJobs: [{name: dataset-initializer}], serviceAccountName: t}\n",
        "apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\nmetadata: {name: a, labels: {l: m}}\nspec:\n"
        "  image: i\n  workers: {replicas: 2, template: {spec: {serviceAccountName: s, nodeSelector: {n: b, m: a},\n"
        "    volumes: [{name: v, emptyDir: {}}],\n"
        "    containers: [{name: trainer, volumeMounts: [{name: v, mountPath: /v}], resources: {}}]}}}\n"
        "  pytorch: {}\n",
        TORCH_RUNTIME "spec.podSpecOverrides[0]: left out: containers[0] (proxy): the runtime defines this container; "
                      "write all of it into workers.template\n"
                      "spec.podSpecOverrides[0]: left out: initContainers[0] (first): the runtime defines this "
                      "container; write all of it into workers.template\n"
                      "spec.podSpecOverrides[2].serviceAccountName: left out: it is for a job of the runtime that "
                      "does not train\n");
    /* 2.1 */
    check(TRAIN_JOB("torch-distributed") TRAIN(NO_RESOURCES) //
          "  podTemplateOverrides:\n"
          "  - {targetJobs: [{name: node}], metadata: {labels: {l: m}}, spec: {tolerations: [{key: k}]}, colour: red}\n"
          "  - {targetJobs: [], spec: {tolerations: []}}\n",
          NEW "  image: i\n  workers: {replicas: 2, template: {metadata: {labels: {l: m}}, spec: {tolerations: [{key: "
              "k}],\n"
              "    containers: [{name: trainer, resources: {}}]}}}\n  pytorch: {}\n",
          TORCH_RUNTIME "spec.podTemplateOverrides[0].colour: left out: a TrainingJob has no such field\n"
                        "spec.podTemplateOverrides[1].spec.tolerations: left out: it is for a job of the runtime that "
                        "does not train\n");
    /* 2.2 */
    check(TRAIN_JOB("torch-distributed") TRAIN(NO_RESOURCES) PATCHES //
              PATCH("{metadata: {labels: {l: m}, annotations: {b: c}}, spec: {replicatedJobs: [{name: node, template: "
                    "{metadata: {labels: {j: k}}, spec: {template: {metadata: {annotations: {p: q}}, spec: "
                    "{securityContext: {runAsUser: 1}}}}}},\n"
                    "    {name: launcher, template: {spec: {template: {spec: {nodeSelector: {n: b}}}}}}]}}") //
          "  - {manager: kueue.x-k8s.io/manager, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, "
          "template: {spec: {template: {spec: {nodeSelector: {zone: z}}}}}}]}}}}\n",
          "apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\n"
          "metadata: {name: a, labels: {l: m}, annotations: {b: c}}\nspec:\n"
          "  image: i\n  workers: {replicas: 2, template: {metadata: {annotations: {p: q}}, spec: {securityContext: "
          "{runAsUser: 1},\n"
          "    containers: [{name: trainer, resources: {}}]}}}\n  pytorch: {}\n",
          TORCH_RUNTIME "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.metadata."
                        "labels.j: left out: a TrainingJob has no such field\n"
                        "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[1].template.spec."
                        "template.spec.nodeSelector.n: left out: it is for a job of the runtime that does not train\n");
}

/* ---------------------------------------------------------------- other documents */

#define MISSING(field) "spec.coxswain." field ": is missing; it is required\n"

Test(migration, values_of_wrong_types)
{
    check(
        "apiVersion: coxswain.dev/v1alpha1\nkind: TrainingJob\n"
        "spec: {roles: 3, framework: [x], init: {from: 3}, strategy: x, model: [1], export: 1}\n",
        "apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\nspec: {coxswain: {strategy: x, model: [1], export: 1}}\n",
        "spec.framework: left out: there are Coxswain, PyTorch, TensorFlow and JAX\n"
        "spec.init.from: left out: it has the wrong type\n"
        "spec.roles: left out: it has the wrong type\n"
        "spec.coxswain.strategy: the value is of type string; give an object\n"
        "spec.coxswain.model: the value is of type array; give an object\n" MISSING("data")
            MISSING("training") "spec.coxswain.export: the value is of type number; give an object\n");
    check("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: [1]\nspec: {runPolicy: 7, nprocPerNode: [1],\n"
          "  elasticPolicy: {rdzvId: [1]}, pytorchReplicaSpecs: {Master: {template: {spec: {containers: [x]}}}, "
          "Worker: 3}}\n",
          "apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\nmetadata: [1]\nspec: {pytorch: {}, runPolicy: 7,\n"
          "  workers: {replicas: 1, minReplicas: 1, maxReplicas: 1}, chief: {template: {spec: {containers: [x]}}}}\n",
          "spec.pytorchReplicaSpecs.Worker: left out: a TrainingJob has no such field\n"
          "spec.elasticPolicy.rdzvId: left out: it has the wrong type\n"
          "spec.nprocPerNode: left out: it has the wrong type\n"
          "spec.runPolicy: the value is of type number; give an object\n");
    check("apiVersion: kubeflow.org/v1\nkind: TFJob\nspec: {tfReplicaSpecs: [1]}\n",
          "apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\nspec: {tensorflow: {}}\n",
          "spec.tfReplicaSpecs: left out: it has the wrong type\n" NO_IMAGE);
    /* resources are a list by mistake */
    check(KUBEFLOW("PyTorchJob") WORKERS("1", ", resources: {limits: [1]}"),
          NEW NEW_WORKERS("1", ", resources: {limits: [1]}"), "");
    check("apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\n"
          "spec: {runtimeRef: torch, labels: 3, podSpecOverrides: 4, podTemplateOverrides: [5], runtimePatches: [x, "
          "{}],\n"
          "  trainer: {numNodes: many, numProcPerNode: [1], resourcesPerNode: {limits: [1], requests: 7}, image: i}}\n",
          "apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\n"
          "spec: {pytorch: {}, image: i, workers: {replicas: 1, template: {spec: {containers: [{name: trainer,\n"
          "  resources: {limits: [1], requests: 7}}]}}}}\n",
          LOOK_UP("clustertrainingruntimes NAME") //
          "\nspec.runtimeRef.name: the name does not tell the framework, and pytorch is assumed; write tensorflow or "
          "jax if the script uses one of these\n"
          "spec.labels: left out: it has the wrong type\n"
          "spec.trainer.numNodes: left out: a TrainingJob has at least one worker\n"
          "spec.podSpecOverrides: left out: it has the wrong type\n"
          "spec.podTemplateOverrides[0]: left out: it is for a job of the runtime that does not train\n"
          "spec.runtimePatches[0]: left out: a TrainingJob has no such field\n"
          "spec.trainer.numProcPerNode: left out: it has the wrong type\n");
    check("apiVersion: coxswain.dev/v1alpha1\nkind: TrainingJob\nspec: 7\n",
          "apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\nspec: {coxswain: {}}\n",
          "spec: left out: a TrainingJob has no such field\n" //
          MISSING("strategy") MISSING("model") MISSING("data") MISSING("training"));
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
    check_untouched(KUBEFLOW("MPIJob"), "not translated: see docs/migration.md");
    check_untouched("apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\n",
                    "not translated: see docs/migration.md");
#define NOT_OURS "not translated: this runtime runs no script of PyTorch, TensorFlow or JAX; see docs/migration.md"
    check_untouched(TRAIN_JOB("deepspeed-distributed"), NOT_OURS);
    check_untouched(TRAIN_JOB("xgboost-distributed"), NOT_OURS);
    check_untouched(TRAIN_JOB("torch-mpi"), NOT_OURS);
}
