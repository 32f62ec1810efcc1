{{/*
The ports of the server: a JSON object with a list "ports" of name, value (prefix of the values of the Service), protocol and
number. The program compares the ports of the Service with them: neither one more nor one less.
*/}}
{{- define "nfs-server-provisioner.ports" -}}
{{- $numbers := list (list "nfs" 2049) (list "nlockmgr" 32803) (list "mountd" 20048) (list "rquotad" 875) (list "rpcbind" 111) (list "statd" 662) -}}
{{- $protocols := list "TCP" "UDP" -}}
{{- if .Values.nfsv4Only -}}
{{- $numbers = list (list "nfs" 2049) -}}
{{- $protocols = list "TCP" -}}
{{- end -}}
{{- $ports := list -}}
{{- range $each := $numbers -}}
{{- range $protocol := $protocols -}}
{{- $name := eq $protocol "UDP" | ternary (printf "%s-udp" (first $each)) (first $each) -}}
{{- $ports = append $ports (dict "name" $name "value" (first $each) "protocol" $protocol "number" (last $each)) -}}
{{- end -}}
{{- end -}}
{{- dict "ports" $ports | toJson -}}
{{- end -}}
