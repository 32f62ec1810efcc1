{{/* What selectors go by. */}}
{{- define "nfs-server-provisioner.selectorLabels" -}}
app: {{ include "nfs-server-provisioner.name" . | quote }}
release: {{ .Release.Name | quote }}
{{- end -}}

{{- define "nfs-server-provisioner.labels" -}}
{{- $chart := printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $own := include "nfs-server-provisioner.selectorLabels" . | fromYaml -}}
{{- merge $own (.Values.labels | default dict) (dict "heritage" .Release.Service "chart" $chart) | toYaml -}}
{{- end -}}

{{- define "nfs-server-provisioner.podLabels" -}}
{{- $own := include "nfs-server-provisioner.selectorLabels" . | fromYaml -}}
{{- merge $own (.Values.podLabels | default dict) (include "nfs-server-provisioner.labels" . | fromYaml) | toYaml -}}
{{- end -}}

{{/* Metadata of an object: dict "root" "name" and, where it is in a namespace, "namespaced" true. */}}
{{- define "nfs-server-provisioner.metadata" -}}
name: {{ .name | quote }}
{{- if and .namespaced .root.Values.namespaceOverride }}
namespace: {{ .root.Values.namespaceOverride | quote }}
{{- end }}
labels:
  {{- include "nfs-server-provisioner.labels" .root | nindent 2 }}
{{- end -}}

{{/* The service account, as the subject of a binding. */}}
{{- define "nfs-server-provisioner.subjects" -}}
- kind: ServiceAccount
  name: {{ include "nfs-server-provisioner.serviceAccountName" . | quote }}
  namespace: {{ include "nfs-server-provisioner.namespace" . | quote }}
{{- end -}}
