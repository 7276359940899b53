{{- /* The labels that select the pods of a queue: "release" and "queue" are names. */ -}}
{{- define "reprise.selector" -}}
app.kubernetes.io/name: reprise
app.kubernetes.io/instance: {{ .release }}
app.kubernetes.io/component: {{ .queue }}
{{- end -}}

{{- define "reprise.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default .Release.Name .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}
