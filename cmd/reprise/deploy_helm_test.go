//go:build unix

package main_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const chart = "deploy/helm/reprise"

// TestChart: Helm accepts the chart with few values and with many, Kubernetes and the program
// accept the manifests, and mistakes in values are refused.
func TestChart(t *testing.T) {
	t.Parallel()
	helm := pinned(t, "helm")
	many := written(t, "values.yaml", `
image: {tag: v9.9.9}
imagePullSecrets: [{name: registry}]
region: eu-west-1
env: [{name: REPRISE_SIGNING_KEYS, valueFrom: {secretKeyRef: {name: keys, key: all}}}]
envFrom: [{configMapRef: {name: all}}]
stopBudgetSeconds: 60
serviceAccount: {create: false, name: existing}
metrics: {enabled: true, podMonitor: true}
podLabels: {team: shop}
podAnnotations: {note: here}
nodeSelector: {kubernetes.io/arch: arm64}
tolerations: [{key: spot, operator: Exists}]
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
priorityClassName: high
queues:
  orders: {queue: 'https://sqs.eu-west-1.amazonaws.com/123456789012/orders', url: 'http://orders/', keda: {enabled: true, authenticationRef: keda}}
  mails: {queue: mails, url: 'http://mails/?a=b#c', replicas: 3, flags: ['--concurrency=4'], env: [{name: ONE, value: "1"}]}
`)
	few := written(t, "values.yaml", "queues: {orders: {queue: orders, url: 'http://orders/'}}\n")
	all := []string{few, many, filepath.Join(root, "deploy/kubernetes/values.yaml")}
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.info == "yaml" && strings.HasPrefix(b.text, "# values.yaml\n") {
				all = append(all, written(t, "values.yaml", b.text))
			}
		}
	}
	if len(all) < 4 {
		t.Error("no page has values for the chart")
	}
	for _, values := range all {
		values, err := filepath.Abs(values)
		if err != nil {
			t.Fatal(err)
		}
		succeeds(t, ".", helm, "lint", "--strict", chart, "--values", values)
		checkManifests(t, succeeds(t, ".", helm, "template", "r", chart, "--values", values))
	}

	for values, want := range map[string]string{
		"queues: {}":                        "minProperties",
		"queues: {orders: {queue: orders}}": "url",
		"queues: {orders: {queue: orders, url: 'http://o', replica: 1}}":                                            "replica",
		"queues: {orders: {queue: orders, url: 'http://o', keda: {enabled: true}}}":                                 "KEDA needs the queue's URL",
		"queues: {orders: {queue: 'https://sqs.example.org/1/orders', url: 'http://o', keda: {enabled: true}}}":     "set region",
		"queues: {Orders: {queue: orders, url: 'http://o'}}":                                                        "Orders",
		"{colour: red, queues: {orders: {queue: orders, url: 'http://o'}}}":                                         "colour",
		"{stopBudgetSeconds: 1m, queues: {orders: {queue: orders, url: 'http://o'}}}":                               "stopBudgetSeconds",
		"{image: {pullPolicy: Sometimes}, queues: {orders: {queue: orders, url: 'http://o'}}}":                      "pullPolicy",
		"queues: {orders: {queue: orders, url: 'orders.shop.svc'}}":                                                 "url",
		"queues: {orders: {queue: orders, url: 'http://o', flags: ['concurrency=4']}}":                              "flags",
		"{keda: {maxReplicas: 0}, queues: {orders: {queue: orders, url: 'http://o'}}}":                              "maxReplicas",
		"queues: {orders: {queue: 'http://127.0.0.1:9324/000000000000/o', url: 'http://o', keda: {enabled: true}}}": "KEDA needs",
	} {
		out, err := exec.Command(helm, "template", "r", filepath.Join(root, chart), "--values", written(t, "values.yaml", values)).CombinedOutput()
		if exitCode(t, err) == 0 || !strings.Contains(string(out), want) {
			t.Errorf("the chart with %s: %v, want an error about %s:\n%s", values, err, want, out)
		}
	}
}

// TestManifestsAreThoseOfTheChart: the manifests in deploy/kubernetes are up to date.
func TestManifestsAreThoseOfTheChart(t *testing.T) {
	t.Parallel()
	text := fileOf(t, "deploy/kubernetes/reprise.yaml")
	checkManifests(t, text)
	given := succeeds(t, ".", pinned(t, "helm"), "template", "orders", chart, "--namespace", "shop", "--values", "deploy/kubernetes/values.yaml")
	if given != text {
		t.Error("deploy/kubernetes/reprise.yaml is not up to date with the chart: run make manifests")
	}
}

// checkManifests checks manifests against the schemas of Kubernetes and KEDA, where those
// are installed, and checks that the program understands its arguments in them.
func checkManifests(t *testing.T, text string) {
	t.Helper()
	type container struct {
		Args           []string
		ReadinessProbe struct{ Exec struct{ Command []string } } `yaml:"readinessProbe"`
	}
	var kinds []string
	for documents := yaml.NewDecoder(strings.NewReader(text)); ; {
		var document struct {
			Kind string
			Spec struct {
				Template struct {
					Spec struct {
						TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
						Containers                    []container
					}
				}
				Triggers []struct{ Metadata map[string]string }
			}
		}
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		kinds = append(kinds, document.Kind)
		for _, c := range document.Spec.Template.Spec.Containers {
			understood(t, "the chart", c.Args)
			probe := c.ReadinessProbe.Exec.Command
			if len(probe) == 0 || probe[0] != "/usr/bin/reprise" {
				t.Errorf("the probe is %q, want one by the program", probe)
				continue
			}
			understood(t, "the chart", probe[1:])
			// A stop needs the program's budget and some seconds more.
			budget := slices.IndexFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "--stop-budget=") })
			if seconds := document.Spec.Template.Spec.TerminationGracePeriodSeconds; budget < 0 || seconds < 35 {
				t.Errorf("the pod has %d s to stop, and the program %q", seconds, c.Args)
			}
		}
		for _, trigger := range document.Spec.Triggers {
			if trigger.Metadata["queueURL"] != "" && trigger.Metadata["scaleOnInFlight"] != "false" {
				t.Errorf("KEDA counts messages that wait for a retry: %v", trigger.Metadata)
			}
		}
	}
	if !slices.Contains(kinds, "Deployment") {
		t.Errorf("there are %v, want a Deployment", kinds)
	}
	t.Run("Kubernetes", func(t *testing.T) {
		succeeds(t, ".", installed(t, "kubernetes-validate"), "--strict", "--quiet", written(t, "manifests.yaml", text))
	})
	t.Run("KEDA", func(t *testing.T) {
		checkScaledObjects(t, pinned(t, "keda"), text)
	})
}

// checkScaledObjects checks the ScaledObjects among manifests by KEDA's own definition.
func checkScaledObjects(t *testing.T, definition, manifests string) {
	t.Helper()
	text, err := os.ReadFile(definition)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema map[string]any `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	schema["properties"].(map[string]any)["metadata"] = true // Kubernetes's own
	strict(schema)
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("scaledobject.json", asJSON(t, schema)); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("scaledobject.json")
	if err != nil {
		t.Fatal(err)
	}
	mistaken := map[string]any{"kind": "ScaledObject", "spec": map[string]any{"maxReplicas": 3}}
	if err := compiled.Validate(asJSON(t, mistaken)); err == nil || !strings.Contains(err.Error(), "maxReplicas") {
		t.Errorf("KEDA's definition accepts %v: %v", mistaken, err)
	}
	for documents := yaml.NewDecoder(strings.NewReader(manifests)); ; {
		var document map[string]any
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if document["kind"] != "ScaledObject" {
			continue
		}
		if err := compiled.Validate(asJSON(t, document)); err != nil {
			t.Errorf("KEDA refuses it: %v", err)
		}
	}
}

// strict makes a schema refuse unknown properties.
func strict(schema map[string]any) {
	properties, ok := schema["properties"].(map[string]any)
	if ok && schema["x-kubernetes-preserve-unknown-fields"] == nil {
		schema["additionalProperties"] = false
	}
	for _, p := range properties {
		if p, ok := p.(map[string]any); ok {
			strict(p)
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		strict(items)
	}
}

// asJSON returns a value of YAML as it is after a way through JSON.
func asJSON(t *testing.T, value any) any {
	t.Helper()
	text, err := yaml.MarshalWithOptions(value, yaml.JSON())
	if err != nil {
		t.Fatal(err)
	}
	read, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return read
}
