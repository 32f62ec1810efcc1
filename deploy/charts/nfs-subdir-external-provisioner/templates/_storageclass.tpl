{{/* The parameters of a class, from its values. */}}
{{- define "nfs-subdir-external-provisioner.classParameters" -}}
{{- $parameters := dict -}}
{{- if hasKey . "archiveOnDelete" -}}
{{- $_ := set $parameters "archiveOnDelete" (toString .archiveOnDelete) -}}
{{- end -}}
{{- range $key := list "onDelete" "pathPattern" -}}
{{- with get $ $key -}}{{- $_ := set $parameters $key (toString .) -}}{{- end -}}
{{- end -}}
{{- range $key, $value := .parameters -}}{{- $_ := set $parameters $key (toString $value) -}}{{- end -}}
{{- toYaml $parameters -}}
{{- end -}}

{{/* A StorageClass: dict "root", "class" (its values) and "mountOptions". */}}
{{- define "nfs-subdir-external-provisioner.storageClass" -}}
{{- $annotations := dict -}}
{{- if .class.defaultClass -}}
{{- $_ := set $annotations "storageclass.kubernetes.io/is-default-class" "true" -}}
{{- end -}}
{{- $annotations = merge (dict) (.class.annotations | default dict) $annotations -}}
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  {{- include "nfs-subdir-external-provisioner.metadata" (dict "root" .root "name" .class.name) | nindent 2 }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
provisioner: {{ include "nfs-subdir-external-provisioner.provisionerName" .root | quote }}
allowVolumeExpansion: {{ .class.allowVolumeExpansion }}
reclaimPolicy: {{ .class.reclaimPolicy }}
volumeBindingMode: {{ .class.volumeBindingMode | default "Immediate" }}
parameters:
  {{- include "nfs-subdir-external-provisioner.classParameters" .class | nindent 2 }}
{{- with .mountOptions }}
mountOptions:
  {{- include "nfs-subdir-external-provisioner.texts" . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A list whose items are texts, whatever YAML took them for; what is no list is refused elsewhere. */}}
{{- define "nfs-subdir-external-provisioner.texts" -}}
{{- $items := list -}}
{{- if or (kindIs "slice" .) (kindIs "map" .) -}}
{{- range . -}}{{- $items = append $items (toString .) -}}{{- end -}}
{{- end -}}
{{- toYaml $items -}}
{{- end -}}
