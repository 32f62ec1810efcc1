{{/* Ends the rendering where the API server would refuse the result, or nothing would work: one line for each reason. */}}
{{- define "nfs-server-provisioner.check" -}}
{{- $problems := list -}}
{{- $fullname := include "nfs-server-provisioner.fullname" . -}}
{{- if gt (len $fullname) 52 -}}
{{- $problems = append $problems (printf "the name %s is too long: a StatefulSet of more than 52 characters gets no Pods; set fullnameOverride to a shorter one" $fullname) -}}
{{- end -}}
{{- if .Values.nfsv4Only -}}
{{- $problems = concat $problems (get (include "nfs-server-provisioner.nfsv4Problems" . | fromYaml) "problems") -}}
{{- end -}}
{{- if and (.Values.http).enabled (hasKey (.Values.extraArgs | default dict) "http-endpoint") -}}
{{- $problems = append $problems "http.enabled and extraArgs.http-endpoint are the same: set one of them" -}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "\n\n%s\n" (join "\n" $problems)) -}}
{{- end -}}
{{- end -}}

{{- define "nfs-server-provisioner.nfsv4Problems" -}}
{{- $problems := list -}}
{{- if hasKey (.Values.extraArgs | default dict) "nfsv3" -}}
{{- $problems = append $problems "nfsv4Only and extraArgs.nfsv3 are the same: set one of them" -}}
{{- end -}}
{{- range .Values.storageClass.mountOptions -}}
{{- if and $.Values.storageClass.create (regexMatch "^(nfs)?vers=[23]" (toString .)) -}}
{{- $problems = append $problems (printf "nfsv4Only needs other storageClass.mountOptions, such as [vers=4.1]; they have %q" (toString .)) -}}
{{- end -}}
{{- end -}}
{{- $service := lookup "v1" "Service" (include "nfs-server-provisioner.namespace" .) (include "nfs-server-provisioner.fullname" .) -}}
{{- if gt (len (((($service).spec).ports) | default list)) 1 -}}
{{- $problems = append $problems "nfsv4Only is for new releases: this one has a Service for NFS version 3, whose clients would lose their server" -}}
{{- end -}}
{{- dict "problems" $problems | toYaml -}}
{{- end -}}
