{{/* A value as text; a whole number without an exponent, which large ones of a file would get. */}}
{{- define "nfs-server-provisioner.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- printf "%.0f" . -}}
{{- else if not (kindIs "invalid" .) -}}
{{- toString . -}}
{{- end -}}
{{- end -}}
