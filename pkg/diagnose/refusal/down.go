package refusal

import (
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
)

// address is the Service in the address that the API server reports of a webhook that does not answer.
var address = regexp.MustCompile(`https://([a-z0-9-]+)\.([a-z0-9-]+)\.svc[:/]`)

// Down finds that a webhook does not answer without which no object is accepted, of a kind as it is called in a sentence; by which Service it is served, and which Deployment
// behind that is not ready.
func Down(c *stage.Context, r Refusal, kind string) *stage.Finding {
	f := stage.Found(answer.WebhookDown, "webhook %s does not answer, and without it no %s is accepted", r.Object, kind).
		Fact("webhook", r.Object).Detail("%s", r.Message)
	service, namespace := servedBy(c, f, r)
	if service != "" {
		f.Detail("it is served by %s", c.TitleOf("Service", &metav1.ObjectMeta{Namespace: namespace, Name: service})).Run(command.Kubectl(namespace, "get", "endpointslices", "-l", "kubernetes.io/service-name="+service))
	}
	for _, d := range c.View.Snap.Deployments {
		if service != "" && d.Namespace == namespace && serves(d, service) && d.Status.ReadyReplicas < ptr.Deref(d.Spec.Replicas, 1) {
			f.Detail("%s has %d of %d pods ready", c.TitleOf("Deployment", d), d.Status.ReadyReplicas, ptr.Deref(d.Spec.Replicas, 1)).
				Run(command.Kubectl(d.Namespace, "describe", "deployment", d.Name))
		}
	}
	fix := Lift(c.Gang, r, answer.Admin, "get webhook "+r.Object+" to answer again", "")
	if lifted := fix.Apply; kind != "pod" {
		fix.Apply = func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.AcceptingProbes(lifted(s), kind) }
	}
	return f.Fix(fix)
}

// servedBy is the Service of a webhook: by its configuration, which is evidence then, or, where the configurations are not seen, by its address in the refusal, which whoever writes
// events may make up; empty where neither shows one.
func servedBy(c *stage.Context, f *stage.Finding, r Refusal) (service, namespace string) {
	hooks, known := Hooks(c.View)
	for _, h := range hooks {
		if h.Name == r.Object && h.Service != "" {
			f.See("admissionregistration.k8s.io/v1", h.Config.GetKind(), h.Config, ".webhooks")
			return h.Service, h.Namespace
		}
	}
	if m := address.FindStringSubmatch(r.Raw); m != nil && !known {
		return m[1], m[2]
	}
	return "", ""
}

// serves reports whether a Deployment is named as a Service is, as that of its pods is as a rule.
func serves(d *appsv1.Deployment, service string) bool {
	return service == d.Name || strings.TrimSuffix(service, "-service") == d.Name || strings.TrimSuffix(service, "-svc") == d.Name
}
