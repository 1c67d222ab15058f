/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/pod_fields.h"

#include <string.h>

#include "common/memory.h"
#include "operator/standalone/quantity_text.h"

/* "name" is a field of any kind, "name:Type" an object of that type or a list of them. Types without a line are not checked; QUANTITY is
 * that of "500m", and QUANTITIES of an object with any fields of that type. */
#define QUANTITY "quantity"
#define QUANTITIES "quantities"
static const struct {
    const char *type, *fields;
} types[] = {
    {"Pod", "apiVersion kind metadata:ObjectMeta spec:PodSpec status"},
    {"ObjectMeta",
     "name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp "
     "deletionGracePeriodSeconds labels annotations ownerReferences:OwnerReference finalizers managedFields"},
    {"OwnerReference", "apiVersion kind name uid controller blockOwnerDeletion"},
    {"PodSpec",
     "volumes:Volume initContainers:Container containers:Container ephemeralContainers restartPolicy "
     "terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName serviceAccount "
     "automountServiceAccountToken nodeName hostNetwork hostPID hostIPC shareProcessNamespace "
     "securityContext:PodSecurityContext imagePullSecrets:Named hostname subdomain affinity:Affinity schedulerName "
     "tolerations:Toleration hostAliases:HostAlias priorityClassName priority dnsConfig:PodDNSConfig "
     "readinessGates:PodReadinessGate runtimeClassName enableServiceLinks preemptionPolicy overhead:" QUANTITIES " "
     "topologySpreadConstraints:TopologySpreadConstraint setHostnameAsFQDN os:Named hostUsers schedulingGates:Named "
     "resourceClaims:PodResourceClaim resources:ResourceRequirements hostnameOverride workloadRef schedulingGroup"},
    {"Container",
     "name image command args workingDir ports:ContainerPort envFrom:EnvFromSource env:EnvVar "
     "resources:ResourceRequirements resizePolicy restartPolicy restartPolicyRules volumeMounts:VolumeMount "
     "volumeDevices:VolumeDevice livenessProbe:Probe readinessProbe:Probe startupProbe:Probe lifecycle:Lifecycle "
     "terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext:SecurityContext stdin stdinOnce "
     "tty"},
    {"ContainerPort", "name hostPort containerPort protocol hostIP"},
    {"EnvFromSource", "prefix configMapRef:OptionalNamed secretRef:OptionalNamed"},
    {"EnvVar", "name value valueFrom:EnvVarSource"},
    {"EnvVarSource", "fieldRef:ObjectFieldSelector resourceFieldRef:ResourceFieldSelector configMapKeyRef:KeySelector "
                     "secretKeyRef:KeySelector fileKeyRef"},
    {"ObjectFieldSelector", "apiVersion fieldPath"},
    {"ResourceFieldSelector", "containerName resource divisor:" QUANTITY},
    {"KeySelector", "name key optional"},
    {"Named", "name"},
    {"OptionalNamed", "name optional"},
    {"ResourceRequirements", "limits:" QUANTITIES " requests:" QUANTITIES " claims"},
    {"VolumeMount", "name readOnly recursiveReadOnly mountPath subPath mountPropagation subPathExpr"},
    {"VolumeDevice", "name devicePath"},
    {"Probe", "exec:ExecAction httpGet:HTTPGetAction tcpSocket:TCPSocketAction grpc:GRPCAction initialDelaySeconds "
              "timeoutSeconds periodSeconds successThreshold failureThreshold terminationGracePeriodSeconds"},
    {"Lifecycle", "postStart:LifecycleHandler preStop:LifecycleHandler stopSignal"},
    {"LifecycleHandler", "exec:ExecAction httpGet:HTTPGetAction tcpSocket:TCPSocketAction sleep:SleepAction"},
    {"ExecAction", "command"},
    {"HTTPGetAction", "path port host scheme httpHeaders:HTTPHeader"},
    {"HTTPHeader", "name value"},
    {"TCPSocketAction", "port host"},
    {"GRPCAction", "port service"},
    {"SleepAction", "seconds"},
    {"SecurityContext",
     "capabilities:Capabilities privileged seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot "
     "readOnlyRootFilesystem allowPrivilegeEscalation procMount seccompProfile:Profile appArmorProfile:Profile"},
    {"Capabilities", "add drop"},
    {"Profile", "type localhostProfile"},
    {"PodSecurityContext",
     "seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot supplementalGroups supplementalGroupsPolicy "
     "fsGroup "
     "sysctls fsGroupChangePolicy seccompProfile:Profile appArmorProfile:Profile seLinuxChangePolicy"},
    {"Toleration", "key operator value effect tolerationSeconds"},
    {"HostAlias", "ip hostnames"},
    {"PodDNSConfig", "nameservers searches options"},
    {"PodReadinessGate", "conditionType"},
    {"PodResourceClaim", "name resourceClaimName resourceClaimTemplateName"},
    {"TopologySpreadConstraint",
     "maxSkew topologyKey whenUnsatisfiable labelSelector:LabelSelector minDomains nodeAffinityPolicy nodeTaintsPolicy "
     "matchLabelKeys"},
    {"LabelSelector", "matchLabels matchExpressions:Requirement"},
    {"Requirement", "key operator values"},
    {"Affinity", "nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAffinity"},
    {"NodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution:NodeSelector "
                     "preferredDuringSchedulingIgnoredDuringExecution:PreferredNode"},
    {"NodeSelector", "nodeSelectorTerms:NodeTerm"},
    {"NodeTerm", "matchExpressions:Requirement matchFields:Requirement"},
    {"PreferredNode", "weight preference:NodeTerm"},
    {"PodAffinity", "requiredDuringSchedulingIgnoredDuringExecution:PodTerm "
                    "preferredDuringSchedulingIgnoredDuringExecution:PreferredPod"},
    {"PodTerm", "labelSelector:LabelSelector namespaces topologyKey namespaceSelector:LabelSelector matchLabelKeys "
                "mismatchLabelKeys"},
    {"PreferredPod", "weight podAffinityTerm:PodTerm"},
    {"Volume",
     "name hostPath:HostPath emptyDir:EmptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret:SecretVolume "
     "nfs:NFS "
     "iscsi glusterfs persistentVolumeClaim:Claim rbd flexVolume cinder cephfs flocker downwardAPI:DownwardVolume fc "
     "azureFile configMap:ConfigMapVolume vsphereVolume quobyte azureDisk photonPersistentDisk projected:Projected "
     "portworxVolume scaleIO storageos csi:CSI ephemeral image:ImageVolume"},
    {"HostPath", "path type"},
    {"EmptyDir", "medium sizeLimit:" QUANTITY},
    {"NFS", "server path readOnly"},
    {"Claim", "claimName readOnly"},
    {"SecretVolume", "secretName items:KeyToPath defaultMode optional"},
    {"ConfigMapVolume", "name items:KeyToPath defaultMode optional"},
    {"KeyToPath", "key path mode"},
    {"DownwardVolume", "items:DownwardFile defaultMode"},
    {"DownwardFile", "path fieldRef:ObjectFieldSelector resourceFieldRef:ResourceFieldSelector mode"},
    {"Projected", "sources:Projection defaultMode"},
    {"Projection",
     "secret:ProjectedMap downwardAPI:DownwardVolume configMap:ProjectedMap serviceAccountToken:ProjectedToken "
     "clusterTrustBundle podCertificate"},
    {"ProjectedMap", "name items:KeyToPath optional"},
    {"ProjectedToken", "audience expirationSeconds path"},
    {"CSI", "driver readOnly fsType volumeAttributes nodePublishSecretRef:Named"},
    {"ImageVolume", "reference pullPolicy"},
};
#define TYPES (sizeof types / sizeof *types)

static const char *fields_of(const char *type, size_t length)
{
    for (size_t i = 0; i < TYPES; i++)
        if (strlen(types[i].type) == length && strncmp(types[i].type, type, length) == 0)
            return types[i].fields;
    return NULL;
}

/* A field's type; of length 0: the field may be anything. */
struct type {
    const char *name;
    size_t length;
};

/* False: there is no such field. */
static bool find_type(const char *fields, const char *name, struct type *ret_type)
{
    size_t length = strlen(name);
    for (const char *word = fields; *word; word += strspn(word, " ")) {
        size_t end = strcspn(word, " "), colon = strcspn(word, ": ");
        if (colon == length && strncmp(word, name, length) == 0) {
            *ret_type = colon < end ? (struct type){word + colon + 1, end - colon - 1} : (struct type){"", 0};
            return true;
        }
        word += end;
    }
    return false;
}

struct findings {
    struct json *unknown; /* paths of fields */
    char *wrong;          /* the first quantity that is none, and why; NULL: none is wrong */
};

static bool is_type(const struct type *type, const char *name)
{
    return type->length == strlen(name) && strncmp(type->name, name, type->length) == 0;
}

/* Numbers are quantities, too, and null is none. */
static void check_quantity(const struct json *value, const char *path, struct findings *findings)
{
    enum json_type type = json_type(value);
    if (type == JSON_NUMBER || type == JSON_NULL || findings->wrong)
        return;
    const char *flaw = quantity_text_flaw(json_string(value, ""));
    findings->wrong = flaw ? memory_format("%s: %s", path, flaw) : NULL;
}

static void check_quantities(const struct json *object, const char *path, struct findings *findings)
{
    for (const struct json *item = json_first(object); item; item = json_next(item)) {
        SCOPED_FREE char *place = memory_format("%s.%s", path, json_key(item));
        check_quantity(item, place, findings);
    }
}

static void check_object(struct json *object, const char *fields, const char *path, struct findings *findings);

/* An object, or a list of objects. */
static void check_objects(struct json *value, const char *fields, const char *path, struct findings *findings)
{
    size_t index = 0;
    if (json_type(value) == JSON_OBJECT)
        check_object(value, fields, path, findings);
    if (json_type(value) != JSON_ARRAY)
        return;
    for (struct json *item = json_first(value); item; item = json_next(item)) {
        SCOPED_FREE char *place = memory_format("%s[%zu]", path, index++);
        if (json_type(item) == JSON_OBJECT)
            check_object(item, fields, place, findings);
    }
}

static void check_value(struct json *value, const struct type *type, const char *path, struct findings *findings)
{
    const char *fields = fields_of(type->name, type->length);
    if (is_type(type, QUANTITY))
        check_quantity(value, path, findings);
    else if (is_type(type, QUANTITIES))
        check_quantities(value, path, findings);
    else if (fields)
        check_objects(value, fields, path, findings);
}

static void check_object(struct json *object, const char *fields, const char *path, struct findings *findings)
{
    struct json *next;
    for (struct json *member = json_first(object); member; member = next) {
        SCOPED_FREE char *place = memory_format("%s%s%s", path, *path ? "." : "", json_key(member));
        struct type type;
        next = json_next(member);
        if (find_type(fields, json_key(member), &type)) {
            check_value(member, &type, place, findings);
        } else {
            json_append_string(findings->unknown, place);
            json_remove(object, json_key(member));
        }
    }
}

char *pod_fields_check(struct json *pod, struct json *unknown)
{
    struct findings findings = {.unknown = unknown};
    check_object(pod, fields_of("Pod", strlen("Pod")), "", &findings);
    return findings.wrong;
}
