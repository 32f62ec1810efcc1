{{/* Label "app" of selectors, which cannot be changed, and part of the full name. */}}
{{- define "nfs-server-provisioner.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "nfs-server-provisioner.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- default $full .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "nfs-server-provisioner.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "nfs-server-provisioner.provisionerName" -}}
{{- default (printf "cluster.local/%s" (include "nfs-server-provisioner.fullname" .)) .Values.storageClass.provisionerName -}}
{{- end -}}

{{- define "nfs-server-provisioner.serviceAccountName" -}}
{{- if .Values.rbac.create -}}
{{- include "nfs-server-provisioner.fullname" . -}}
{{- else -}}
{{- .Values.rbac.serviceAccountName -}}
{{- end -}}
{{- end -}}

{{- define "nfs-server-provisioner.priorityClassName" -}}
{{- if (.Values.priorityClass).name -}}
{{- .Values.priorityClass.name -}}
{{- else if (.Values.priorityClass).create -}}
{{- include "nfs-server-provisioner.fullname" . -}}
{{- end -}}
{{- end -}}

{{- define "nfs-server-provisioner.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}
