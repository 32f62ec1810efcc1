{{/* What selectors go by. */}}
{{- define "nfs-subdir-external-provisioner.selectorLabels" -}}
app: {{ include "nfs-subdir-external-provisioner.name" . | quote }}
release: {{ .Release.Name | quote }}
{{- end -}}

{{- define "nfs-subdir-external-provisioner.podLabels" -}}
{{- $own := include "nfs-subdir-external-provisioner.selectorLabels" . | fromYaml -}}
{{- merge (dict) (.Values.labels | default dict) $own | toYaml -}}
{{- end -}}

{{- define "nfs-subdir-external-provisioner.labels" -}}
{{- $chart := printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $pod := include "nfs-subdir-external-provisioner.podLabels" . | fromYaml -}}
{{- merge $pod (dict "heritage" .Release.Service "chart" $chart) | toYaml -}}
{{- end -}}

{{/* Metadata of an object: dict "root" "name" and, where it is in a namespace, "namespaced" true. */}}
{{- define "nfs-subdir-external-provisioner.metadata" -}}
name: {{ .name | quote }}
{{- if and .namespaced .root.Values.namespaceOverride }}
namespace: {{ .root.Values.namespaceOverride | quote }}
{{- end }}
labels:
  {{- include "nfs-subdir-external-provisioner.labels" .root | nindent 2 }}
{{- end -}}

{{/* The service account, as the subject of a binding. */}}
{{- define "nfs-subdir-external-provisioner.subjects" -}}
- kind: ServiceAccount
  name: {{ include "nfs-subdir-external-provisioner.serviceAccountName" . | quote }}
  namespace: {{ include "nfs-subdir-external-provisioner.namespace" . | quote }}
{{- end -}}
