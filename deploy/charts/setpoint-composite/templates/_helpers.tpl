{{- define "setpoint-composite.labels" -}}
app.kubernetes.io/name: setpoint-composite
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* The name of the Service begins with a letter, which that of a release need not. */}}
{{- define "setpoint-composite.service" -}}
{{ if regexMatch "^[a-z]" .Release.Name }}{{ .Release.Name }}{{ else }}composite-{{ .Release.Name }}{{ end }}
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

{{- /* The variables that say how Consul is reached. */}}
{{- define "setpoint-composite.consul" -}}
- {name: CONSUL_URL, value: {{ .Values.consul.url | quote }}}
{{- if .Values.consul.tokenSecret }}
- {name: CONSUL_HTTP_TOKEN_FILE, value: /etc/setpoint/consul-token/token}
{{- end }}
{{- with .Values.consul.authMethod }}
- {name: CONSUL_AUTH_METHOD, value: {{ . | quote }}}
{{- end }}
{{- if .Values.consul.caSecret }}
- {name: CONSUL_CACERT, value: /etc/setpoint/consul-ca/ca.crt}
{{- end }}
{{- if .Values.consul.clientSecret }}
- {name: CONSUL_CLIENT_CERT, value: /etc/setpoint/consul-client/tls.crt}
- {name: CONSUL_CLIENT_KEY, value: /etc/setpoint/consul-client/tls.key}
{{- end }}
{{- with .Values.consul.datacenter }}
- {name: CONSUL_DATACENTER, value: {{ . | quote }}}
{{- end }}
{{- with .Values.consul.namespace }}
- {name: CONSUL_NAMESPACE, value: {{ . | quote }}}
{{- end }}
{{- with .Values.consul.partition }}
- {name: CONSUL_PARTITION, value: {{ . | quote }}}
{{- end }}
{{- end }}

{{- /* What is made after the release is gone, in an order, and removed when it has done its work. */}}
{{- define "setpoint-composite.hook" -}}
helm.sh/hook: post-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
