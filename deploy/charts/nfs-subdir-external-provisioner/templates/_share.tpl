{{/* Non-empty where the share is mounted through a claim: a volume inside a Pod takes no mount options. */}}
{{- define "nfs-subdir-external-provisioner.usesClaim" -}}
{{- if .Values.nfs.mountOptions -}}true{{- end -}}
{{- end -}}

{{- define "nfs-subdir-external-provisioner.shareSource" -}}
nfs:
  server: {{ .Values.nfs.server | quote }}
  path: {{ .Values.nfs.path | quote }}
{{- end -}}

{{/* Releases of before 4.0.11 have no such value, which counts with --reuse-values. */}}
{{- define "nfs-subdir-external-provisioner.volumeName" -}}
{{- default "nfs-subdir-external-provisioner-root" .Values.nfs.volumeName | quote -}}
{{- end -}}

{{/* The volume of the Pod, without its name. */}}
{{- define "nfs-subdir-external-provisioner.podVolume" -}}
{{- if .Values.buildMode -}}
emptyDir: {}
{{- else if include "nfs-subdir-external-provisioner.usesClaim" . -}}
persistentVolumeClaim:
  claimName: {{ printf "pvc-%s" (include "nfs-subdir-external-provisioner.fullname" .) | quote }}
{{- else -}}
{{ include "nfs-subdir-external-provisioner.shareSource" . }}
{{- end -}}
{{- end -}}

{{/* Environment of the container; an entry of extraEnv replaces the one of the same name. */}}
{{- define "nfs-subdir-external-provisioner.env" -}}
{{- $own := list
  (dict "name" "PROVISIONER_NAME" "value" (include "nfs-subdir-external-provisioner.provisionerName" .))
  (dict "name" "NFS_SERVER" "value" (toString (default "" .Values.nfs.server)))
  (dict "name" "NFS_PATH" "value" (toString (default "" .Values.nfs.path)))
-}}
{{- if eq (toString .Values.leaderElection.enabled) "false" -}}
{{- $own = append $own (dict "name" "ENABLE_LEADER_ELECTION" "value" "false") -}}
{{- end -}}
{{- if (.Values.http).enabled -}}
{{- $own = append $own (dict "name" "HTTP_ENDPOINT" "value" (printf ":%d" (int .Values.http.port))) -}}
{{- end -}}
{{- $extra := .Values.extraEnv | default list -}}
{{- $replaced := list -}}
{{- range $extra -}}{{- $replaced = append $replaced .name -}}{{- end -}}
{{- $kept := list -}}
{{- range $own -}}{{- if not (has .name $replaced) -}}{{- $kept = append $kept . -}}{{- end -}}{{- end -}}
{{- concat $kept $extra | toYaml -}}
{{- end -}}
