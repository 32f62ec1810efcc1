{{/* Ends the rendering where the API server would refuse the result, or nothing would work: one line for each reason. */}}
{{- define "nfs-subdir-external-provisioner.check" -}}
{{- $problems := list -}}
{{- with .Values.nfs -}}
{{- if not $.Values.buildMode -}}
{{- if not .server -}}
{{- $problems = append $problems "nfs.server is required: set it to the name or the address of your NFS server" -}}
{{- end -}}
{{- if not (hasPrefix "/" (toString .path)) -}}
{{- $problems = append $problems (printf "nfs.path must be an absolute path, that of the exported directory; it is %q" (toString (default "" .path))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $options := dict "nfs.mountOptions" .Values.nfs.mountOptions "storageClass.mountOptions" .Values.storageClass.mountOptions -}}
{{- if and $options (not (kindIs "slice" $options)) (not (kindIs "map" $options)) -}}
{{- $problems = append $problems (printf "%s must be a list, such as [%s]; it is %q" $name (toString $options) (toString $options)) -}}
{{- end -}}
{{- end -}}
{{- if include "nfs-subdir-external-provisioner.usesClaim" . -}}
{{- $problems = concat $problems (get (include "nfs-subdir-external-provisioner.shareProblems" . | fromYaml) "problems") -}}
{{- end -}}
{{- range $key, $value := include "nfs-subdir-external-provisioner.selectorLabels" . | fromYaml -}}
{{- $given := get ($.Values.labels | default dict) $key -}}
{{- if and $given (ne $given $value) -}}
{{- $problems = append $problems (printf "labels.%s cannot be set: the label is in selectors, with the value %q" $key $value) -}}
{{- end -}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "\n\n%s\n" (join "\n" $problems)) -}}
{{- end -}}
{{- end -}}

{{/* Of the PersistentVolume and the claim of the share. */}}
{{- define "nfs-subdir-external-provisioner.shareProblems" -}}
{{- $problems := list -}}
{{- $modes := list "ReadWriteOnce" "ReadOnlyMany" "ReadWriteMany" "ReadWriteOncePod" -}}
{{- if not (has .Values.storageClass.accessModes $modes) -}}
{{- $problems = append $problems (printf "storageClass.accessModes must be one of %s, as a string; it is %q" (join ", " $modes) (toString .Values.storageClass.accessModes)) -}}
{{- end -}}
{{- $policies := list "Retain" "Delete" "Recycle" -}}
{{- if not (has (.Values.nfs.reclaimPolicy | default "Retain") $policies) -}}
{{- $problems = append $problems (printf "nfs.reclaimPolicy must be one of %s; it is %q" (join ", " $policies) (toString .Values.nfs.reclaimPolicy)) -}}
{{- end -}}
{{- dict "problems" $problems | toYaml -}}
{{- end -}}
