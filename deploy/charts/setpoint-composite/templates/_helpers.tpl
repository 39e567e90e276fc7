{{- define "setpoint-composite.labels" -}}
app.kubernetes.io/name: setpoint-composite
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "setpoint-composite.selector" -}}
app.kubernetes.io/name: setpoint-composite
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "setpoint-composite.rules" -}}
- apiGroups: [core.netcracker.com]
  resources: [composites]
  verbs: [get, list, watch, patch]
- apiGroups: [core.netcracker.com]
  resources: [composites/status]
  verbs: [update]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ .Values.configMap | quote }}]
  verbs: [get, list, watch, patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{- /* The Secrets that are mounted, by the names of their folders. */}}
{{- define "setpoint-composite.secrets" -}}
{{- with .Values.consul.tokenSecret }}
consul-token: {{ . | quote }}
{{- end }}
{{- with .Values.consul.caSecret }}
consul-ca: {{ . | quote }}
{{- end }}
{{- with .Values.consul.clientSecret }}
consul-client: {{ . | quote }}
{{- end }}
{{- end }}

{{- /* A value as a text. Helm itself writes 1200000 as 1.2e+06. */}}
{{- define "setpoint-composite.text" -}}
{{ if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}
