{{- define "nfs-server-provisioner.args" -}}
- {{ printf "-provisioner=%s" (include "nfs-server-provisioner.provisionerName" .) | quote }}
{{- range $flag, $value := .Values.extraArgs }}
- {{ printf "-%v=%s" $flag (include "nfs-server-provisioner.text" $value) | quote }}
{{- end }}
{{- if .Values.nfsv4Only }}
- -nfsv3=false
{{- end }}
{{- if (.Values.http).enabled }}
- {{ printf "-http-endpoint=:%d" (int .Values.http.port) }}
{{- end }}
{{- end -}}

{{/* Environment of the container; an entry of extraEnv replaces the one of the same name. */}}
{{- define "nfs-server-provisioner.env" -}}
{{- $own := list
  (dict "name" "POD_IP" "valueFrom" (dict "fieldRef" (dict "fieldPath" "status.podIP")))
  (dict "name" "SERVICE_NAME" "value" (include "nfs-server-provisioner.fullname" .))
  (dict "name" "POD_NAMESPACE" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.namespace")))
-}}
{{- $extra := .Values.extraEnv | default list -}}
{{- $replaced := list -}}
{{- range $extra -}}{{- $replaced = append $replaced .name -}}{{- end -}}
{{- $kept := list -}}
{{- range $own -}}{{- if not (has .name $replaced) -}}{{- $kept = append $kept . -}}{{- end -}}{{- end -}}
{{- concat $kept $extra | toYaml -}}
{{- end -}}

{{- define "nfs-server-provisioner.probes" -}}
# The program restarts a server that hangs before this restarts the container.
livenessProbe:
  httpGet:
    path: /healthz
    port: http
  failureThreshold: 6
# Not /readyz, which fails without an API server, too: clients of NFS do not need one.
readinessProbe:
  tcpSocket:
    port: nfs
{{- end -}}
