{{/* What renders, but is hardly intended: a paragraph for each. */}}
{{- define "nfs-server-provisioner.warnings" -}}
{{- $warnings := list -}}
{{- $image := include "nfs-server-provisioner.image" . -}}
{{- if or (contains "sig-storage/" $image) (hasSuffix ":v4.0.8" $image) -}}
{{- $warnings = append $warnings (printf "The image %s is the one of the original. It comes from your values or, with --reuse-values, from the defaults of the original chart: upgrade with --reset-then-reuse-values, and without setting image.repository and image.tag." $image) -}}
{{- end -}}
{{- if not .Values.persistence.enabled -}}
{{- $warnings = append $warnings "persistence.enabled is false: all volumes are lost with the Pod." -}}
{{- end -}}
{{- range $name, $value := dict "persistence.enabled" .Values.persistence.enabled "storageClass.create" .Values.storageClass.create "storageClass.defaultClass" .Values.storageClass.defaultClass "rbac.create" .Values.rbac.create "priorityClass.create" (.Values.priorityClass).create -}}
{{- if kindIs "string" $value -}}
{{- if eq $value "false" -}}
{{- $warnings = append $warnings (printf "%s is the string \"false\", which counts as true; set it to false without quotes." $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $context := .Values.securityContext | default dict -}}
{{- if not (or $context.privileged (has "DAC_READ_SEARCH" (($context.capabilities).add | default list)) (has "ALL" (($context.capabilities).add | default list))) -}}
{{- $warnings = append $warnings "securityContext does not add the capability DAC_READ_SEARCH, without which no file can be opened. With --reuse-values and a chart before 1.7.0 it is missing: upgrade with --reset-then-reuse-values." -}}
{{- end -}}
{{- if gt (int .Values.replicaCount) 1 -}}
{{- $warnings = append $warnings "With several replicas no claim is served: the Service must select one Pod, which has the volumes on its disk. Set replicaCount to 1." -}}
{{- end -}}
{{- if eq (toString .Values.service.clusterIP) "None" -}}
{{- $warnings = append $warnings "The Service has no cluster IP, which PersistentVolumes need as the address of the server: no claim is served." -}}
{{- end -}}
{{- range get (include "nfs-server-provisioner.ports" . | fromJson) "ports" -}}
{{- $port := int (get $.Values.service (printf "%sPort" .value)) -}}
{{- if and (eq .protocol "TCP") (ne $port (int .number)) -}}
{{- $warnings = append $warnings (printf "service.%sPort is %d: clients use %d, unless their mount options say otherwise." .value $port (int .number)) -}}
{{- end -}}
{{- end -}}
{{- range $warnings }}

WARNING: {{ . }}
{{- end -}}
{{- end -}}
