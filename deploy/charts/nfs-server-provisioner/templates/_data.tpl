{{/* The volume of the exports where the StatefulSet makes no claim for it, without its name. */}}
{{- define "nfs-server-provisioner.dataVolume" -}}
{{- if .Values.persistence.enabled -}}
persistentVolumeClaim:
  claimName: {{ tpl .Values.persistence.existingClaim . | quote }}
{{- else -}}
emptyDir: {}
{{- end -}}
{{- end -}}

{{/* Of a StatefulSet that exists, nothing in here can change: no labels. */}}
{{- define "nfs-server-provisioner.claimTemplate" -}}
{{- with .Values.persistence -}}
- metadata:
    name: data
  spec:
    accessModes: [{{ .accessMode | quote }}]
    {{- if .storageClass }}
    storageClassName: {{ eq .storageClass "-" | ternary "" .storageClass | quote }}
    {{- end }}
    resources:
      requests:
        storage: {{ .size | quote }}
{{- end -}}
{{- end -}}
