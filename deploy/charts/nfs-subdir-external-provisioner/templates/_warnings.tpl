{{/* What renders, but is hardly intended: a paragraph for each. */}}
{{- define "nfs-subdir-external-provisioner.warnings" -}}
{{- $warnings := list -}}
{{- $image := include "nfs-subdir-external-provisioner.image" . -}}
{{- if or (contains "sig-storage/" $image) (hasSuffix ":v4.0.2" $image) -}}
{{- $warnings = append $warnings (printf "The image %s is the one of the original. It comes from your values or, with --reuse-values, from the defaults of the original chart: upgrade with --reset-then-reuse-values, and without setting image.repository and image.tag." $image) -}}
{{- end -}}
{{- range $name, $value := dict "storageClass.create" .Values.storageClass.create "storageClass.defaultClass" .Values.storageClass.defaultClass "rbac.create" .Values.rbac.create "serviceAccount.create" .Values.serviceAccount.create "podSecurityPolicy.enabled" (.Values.podSecurityPolicy).enabled "podDisruptionBudget.enabled" (.Values.podDisruptionBudget).enabled "buildMode" .Values.buildMode -}}
{{- if kindIs "string" $value -}}
{{- if eq $value "false" -}}
{{- $warnings = append $warnings (printf "%s is the string \"false\", which counts as true; set it to false without quotes." $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if gt (int .Values.replicaCount) 1 -}}
{{- if eq (toString .Values.leaderElection.enabled) "false" -}}
{{- $warnings = append $warnings "There are several replicas and no leader election: all of them work on the same claims. Set leaderElection.enabled to true, or replicaCount to 1." -}}
{{- end -}}
{{- if eq (toString .Values.strategyType) "Recreate" -}}
{{- $warnings = append $warnings "strategyType is Recreate: with several replicas, RollingUpdate keeps one running during an upgrade." -}}
{{- end -}}
{{- end -}}
{{- with .Values.storageClass -}}
{{- if .create -}}
{{- $booleans := list "1" "t" "T" "TRUE" "true" "True" "0" "f" "F" "FALSE" "false" "False" -}}
{{- if and (not (has (toString .archiveOnDelete) $booleans)) (not (has .onDelete (list "delete" "retain"))) -}}
{{- $warnings = append $warnings "storageClass.archiveOnDelete is neither true nor false: volumes of the class will not be deleted." -}}
{{- end -}}
{{- if and .onDelete (not (has .onDelete (list "delete" "retain"))) -}}
{{- $warnings = append $warnings (printf "storageClass.onDelete is %q, which is ignored; it must be delete or retain." (toString .onDelete)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (.Values.podSecurityPolicy).enabled (not (include "nfs-subdir-external-provisioner.hasPodSecurityPolicy" .)) -}}
{{- $warnings = append $warnings "This cluster has no PodSecurityPolicies: podSecurityPolicy.enabled has no effect." -}}
{{- end -}}
{{- range $warnings }}

WARNING: {{ . }}
{{- end -}}
{{- end -}}
