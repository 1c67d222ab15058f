{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* Begins every template. What a release of an older chart does not know has its default: `helm upgrade --reuse-values`
brings only the values that the older chart had. */ -}}
{{- define "coxswain.defaults" -}}
{{- include "coxswain.complete" (list .Values (.Files.Get "files/values.yaml" | fromYaml)) -}}
{{- end -}}

{{- /* (list VALUES DEFAULTS). What goes to Kubernetes as it is stands or falls as a whole: there a key may have been left out. */ -}}
{{- define "coxswain.complete" -}}
{{- $values := index . 0 -}}
{{- range $key, $default := index . 1 -}}
{{- if or (not (hasKey $values $key)) (kindIs "invalid" (index $values $key)) -}}
{{- $_ := set $values $key $default -}}
{{- else if and (kindIs "map" $default) (not (has $key (list "resources" "livenessProbe" "readinessProbe" "labels"))) -}}
{{- include "coxswain.complete" (list (index $values $key) $default) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "coxswain.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- /* A release called like the chart needs no doubled name. */ -}}
{{- define "coxswain.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "coxswain.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "coxswain.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "coxswain.selector" -}}
app.kubernetes.io/name: {{ include "coxswain.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "coxswain.labels" -}}
{{ include "coxswain.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "coxswain.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "coxswain.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* A Service, a Role, a Secret and an EndpointSlice. */ -}}
{{- define "coxswain.progressName" -}}
{{- printf "%s-progress" (include "coxswain.fullname" .) -}}
{{- end -}}

{{- define "coxswain.leaseName" -}}
{{- default (include "coxswain.fullname" .) .Values.leaseName -}}
{{- end -}}

{{- /* (list IMAGE ROOT): repository with its digest, else its tag, else the version of the application */ -}}
{{- define "coxswain.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- /* `--set image.tag=7` is a number for Helm */ -}}
{{- $tag := default "" $image.tag -}}
{{- if not (kindIs "string" $tag) -}}
{{- $tag = int64 $tag | toString -}}
{{- end -}}
{{- printf "%s:%s" $image.repository (default (index . 1).Chart.AppVersion $tag) -}}
{{- end -}}
{{- end -}}

{{- define "coxswain.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "coxswain.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "coxswain.testHook" }}
    helm.sh/hook: test
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- /* (list NAME NAMESPACE SECONDS): what `helm test` trains */}}
{{- define "coxswain.testJob" }}
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata:
  name: {{ index . 0 }}
  namespace: {{ index . 1 }}
  annotations:
    {{- include "coxswain.testHook" . }}
    helm.sh/hook-weight: "1"
spec:
  coxswain:
    strategy: {type: OneDevice}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 1000}
    training: {steps: 100, batchSize: 50, optimizer: {type: SGD, learningRate: 0.1}}
  runPolicy: {backoffLimit: 1, activeDeadlineSeconds: {{ index . 2 }}}
{{- end }}
