{{/* Non-empty where the policy is wanted and the cluster has the API, which is gone from Kubernetes 1.25 on. */}}
{{- define "nfs-subdir-external-provisioner.hasPodSecurityPolicy" -}}
{{- if (.Values.podSecurityPolicy).enabled -}}
{{- if or (.Capabilities.APIVersions.Has "policy/v1beta1/PodSecurityPolicy") (semverCompare "<1.25-0" .Capabilities.KubeVersion.Version) -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The rule to use the policy, or nothing. */}}
{{- define "nfs-subdir-external-provisioner.podSecurityPolicies" -}}
{{- if include "nfs-subdir-external-provisioner.hasPodSecurityPolicy" . -}}
- apiGroups: [extensions]
  resources: [podsecuritypolicies]
  verbs: [use]
  resourceNames: [{{ include "nfs-subdir-external-provisioner.fullname" . | quote }}]
{{- end -}}
{{- end -}}
