package addon

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// shipped is a manifest as kustomize makes it of what a project installs. NAME is the name of the controller.
const shipped = `apiVersion: v1
kind: Namespace
metadata: {name: NAME-system}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: runs.x.io}
spec:
  group: x.io
  conversion:
    strategy: Webhook
    webhook:
      clientConfig: {service: {name: NAME-webhook-service, namespace: NAME-system, path: /convert}}
      conversionReviewVersions: [v1]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: plain.x.io}
spec: {group: x.io}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME-manager-role}
---
apiVersion: v1
kind: Service
metadata: {name: NAME-webhook-service, namespace: NAME-system}
spec: {selector: {app: NAME}, ports: [{port: 443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME-controller-manager, namespace: NAME-system}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.visibility.x.io}
---
apiVersion: x.io/v1
kind: Run
metadata: {name: shipped}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: NAME-mutating, labels: {app: NAME}}
webhooks:
- name: mrun.x.io
  clientConfig: {caBundle: Cg==, service: {name: NAME-webhook-service, namespace: NAME-system, path: /mutate-run}}
- name: mpod.x.io
  clientConfig: {service: {name: NAME-webhook-service, namespace: NAME-system, path: /mutate-pod}}
`

// named are the kinds and names of objects.
func named(t *testing.T, texts [][]byte) (names string, first *unstructured.Unstructured) {
	t.Helper()
	var all []string
	for _, text := range texts {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = u
		}
		all = append(all, u.GetKind()+"/"+u.GetName())
	}
	return strings.Join(all, " "), first
}

// installation is that of a controller that ships the manifest.
func installation(t *testing.T, name string) *Installation {
	t.Helper()
	files := map[string]string{name + ".yaml": strings.ReplaceAll(shipped, "NAME", name)}
	i, err := Chosen(name)[0].Installation(folder(t, files), Place{WebhookPort: 1001}, []byte("PEM"))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// calls are how the API server calls webhooks.
func calls(t *testing.T, u *unstructured.Unstructured, fields ...string) string {
	t.Helper()
	var all []any
	if list, ok, _ := unstructured.NestedSlice(u.Object, "webhooks"); ok {
		for _, item := range list {
			all = append(all, item.(map[string]any)["clientConfig"])
		}
	} else {
		client, _, _ := unstructured.NestedMap(u.Object, fields...)
		all = append(all, client)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A controller outside of the cluster gets its kinds and its rights, and is called by URL. What would run it in the cluster is left out.
func TestInstallation(t *testing.T) {
	i := installation(t, "jobset")
	definitions, converted := named(t, i.Definitions)
	rights, _ := named(t, i.Rights)
	webhooks, webhook := named(t, i.Webhooks)
	objects, _ := named(t, i.Objects)
	for _, tt := range []struct{ got, want string }{
		{definitions, "CustomResourceDefinition/runs.x.io CustomResourceDefinition/plain.x.io"},
		{rights, "Namespace/jobset-system ClusterRole/jobset-manager-role"},
		{webhooks, "MutatingWebhookConfiguration/jobset-mutating"},
		{objects, "Run/shipped"},
		{strings.Join(i.Paths, " "), "/mutate-run /mutate-pod"},
		{webhook.GetLabels()[Label], "jobset"},
		{webhook.GetLabels()["app"], "jobset"},
		{calls(t, webhook), `[{"caBundle":"UEVN","url":"https://127.0.0.1:1001/mutate-run"},{"caBundle":"UEVN","url":"https://127.0.0.1:1001/mutate-pod"}]`},
		{calls(t, converted, "spec", "conversion", "webhook", "clientConfig"), `[{"caBundle":"UEVN","url":"https://127.0.0.1:1001/convert"}]`},
	} {
		if tt.got != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}

// A controller that makes its certificate itself makes it for the name of its Service, which leads to where it runs.
func TestInstallationWithOwnCertificate(t *testing.T) {
	i := installation(t, "kueue")
	rights, _ := named(t, i.Rights)
	if want := "Namespace/kueue-system ClusterRole/kueue-manager-role Service/kueue-webhook-service"; rights != want {
		t.Errorf("got %s", rights)
	}
	_, service := named(t, i.Rights[2:])
	if spec, _ := json.Marshal(service.Object["spec"]); string(spec) != `{"externalName":"127.0.0.1","type":"ExternalName"}` {
		t.Errorf("got %s", spec)
	}
	_, webhook := named(t, i.Webhooks)
	want := `{"service":{"name":"kueue-webhook-service","namespace":"kueue-system","path":"/mutate-run","port":1001}}`
	if got := calls(t, webhook); !strings.HasPrefix(got, "["+want) || strings.Contains(got, "caBundle") {
		t.Errorf("got %s", got)
	}
	_, converted := named(t, i.Definitions)
	if got := calls(t, converted, "spec", "conversion", "webhook", "clientConfig"); got != "["+strings.Replace(want, "mutate-run", "convert", 1)+"]" {
		t.Errorf("got %s", got)
	}
}

// A manifest that is none is refused. So is a webhook elsewhere, which could not be had at the controller's place: a project that ships one has
// to be looked at.
func TestInstallationRefuses(t *testing.T) {
	elsewhere := strings.Replace(shipped, "{service: {name: NAME-webhook-service, namespace: NAME-system, path: /mutate-pod}}", "{url: https://elsewhere}", 1)
	for _, tt := range []struct{ manifest, message, hint string }{
		{"a: b: c", "jobset.yaml of the controller jobset: parse manifest", "make it again: make controllers"},
		{"# nothing\n", "jobset.yaml of the controller jobset: there are no objects in it", "make it again: make controllers"},
		{elsewhere, "MutatingWebhookConfiguration NAME-mutating: webhook mpod.x.io is not called by a Service", ""},
	} {
		_, err := Chosen("jobset")[0].Installation(folder(t, map[string]string{"jobset.yaml": tt.manifest}), Place{}, nil)
		if err == nil || !strings.Contains(err.Error(), tt.message) || failure.From(err).Hint != tt.hint {
			t.Errorf("got %v, want %s", err, tt.message)
		}
	}
	if _, err := Chosen("jobset")[0].Installation(t.TempDir(), Place{}, nil); err == nil || !strings.Contains(err.Error(), "the manifest of the controller jobset") {
		t.Errorf("got %v", err)
	}
}
