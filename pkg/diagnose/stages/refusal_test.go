package stages_test

import (
	"testing"

	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
)

// Messages of API servers, verbatim.
func TestParseRefusal(t *testing.T) {
	tests := []struct {
		text         string
		kind         refusal.Kind
		object, pod  string
		message, res string
	}{
		{`Error creating: pods "g-worker-1" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=16, limited: requests.nvidia.com/gpu=16`, refusal.Quota, "gpus", "g-worker-1",
			"exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=16, limited: requests.nvidia.com/gpu=16", "pods"},
		{`Error creating: pods "g-worker-1" is forbidden: failed quota: q: must specify limits.cpu for: tensorflow; limits.memory for: tensorflow`, refusal.QuotaField, "q", "g-worker-1", "failed quota: q: must specify limits.cpu for: tensorflow; limits.memory for: tensorflow", "pods"},
		{`pods "g-worker-1" is forbidden: [maximum cpu usage per Container is 16, but limit is 32, maximum memory usage per Container is 64Gi, but limit is 100Gi]`, refusal.LimitRange, "cpu", "g-worker-1", "[maximum cpu usage per Container is 16, but limit is 32, maximum memory usage per Container is 64Gi, but limit is 100Gi]", "pods"},
		{`pods "g-worker-1" is forbidden: minimum memory usage per Pod is 1Gi, but request is 512Mi`, refusal.LimitRange, "memory", "g-worker-1", "minimum memory usage per Pod is 1Gi, but request is 512Mi", "pods"},
		{`pods "g-worker-1" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000`, refusal.LimitRange, "", "g-worker-1", "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000", "pods"},
		{`admission webhook "policy.example.com" denied the request: missing label team`, refusal.Webhook, "policy.example.com", "", "missing label team", "pods"},
		{`Error creating: admission webhook "validate.kyverno.svc-fail" denied the request: ` + "\n\nresource Pod/team/g was blocked\n\n  a: b\n", refusal.Webhook, "validate.kyverno.svc-fail", "", "resource Pod/team/g was blocked a: b", "pods"},
		{`pods "g-worker-0" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`, refusal.Webhook, `PodSecurity "restricted:latest"`, "g-worker-0", `violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`, "pods"},
		{`pods "g-worker-0" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, refusal.Webhook, "ValidatingAdmissionPolicy 'p'", "g-worker-0", "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", "pods"},
		{`Internal error occurred: failed calling webhook "m.example.com": failed to call webhook: Post "https://hook.infra.svc:443/?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused`, refusal.WebhookDown, "m.example.com", "", `Internal error occurred: failed calling webhook "m.example.com": failed to call webhook: Post "https://hook.infra.svc:443/?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused`, "pods"},
		{`Internal error occurred: failed calling admission webhook "old.example.com": Post: EOF`, refusal.WebhookDown, "old.example.com", "", `Internal error occurred: failed calling admission webhook "old.example.com": Post: EOF`, "pods"},
		{`pods "g-worker-0" is forbidden: no PriorityClass with name gold was found`, refusal.PriorityClass, "gold", "g-worker-0", "no PriorityClass with name gold was found", "pods"},
		{`pods "g-worker-0" is forbidden: error looking up service account team/trainer: serviceaccount "trainer" not found`, refusal.ServiceAccount, "trainer", "g-worker-0", `error looking up service account team/trainer: serviceaccount "trainer" not found`, "pods"},
		{`pods "g-worker-0" is forbidden: pod rejected: RuntimeClass "gvisor" not found`, refusal.RuntimeClass, "gvisor", "g-worker-0", `pod rejected: RuntimeClass "gvisor" not found`, "pods"},
		{`pods "g-worker-0" is forbidden: unable to create new content in namespace team because it is being terminated`, refusal.Namespace, "terminated", "g-worker-0", "unable to create new content in namespace team because it is being terminated", "pods"},
		{`Error creating: pods is forbidden: User "system:serviceaccount:kubeflow:op" cannot create resource "pods" in API group "" in the namespace "team"`, refusal.Forbidden, "system:serviceaccount:kubeflow:op", "", `pods is forbidden: User "system:serviceaccount:kubeflow:op" cannot create resource "pods" in API group "" in the namespace "team"`, "pods"},
		{`services is forbidden: User "system:serviceaccount:kubeflow:op" cannot create resource "services" in API group "" in the namespace "team"`, refusal.Forbidden, "system:serviceaccount:kubeflow:op", "", `services is forbidden: User "system:serviceaccount:kubeflow:op" cannot create resource "services" in API group "" in the namespace "team"`, "services"},
		{`Error creating: services "g-worker-1" is forbidden: exceeded quota: net, requested: services=1, used: services=3, limited: services=3`, refusal.Quota, "net", "",
			`services "g-worker-1" is forbidden: exceeded quota: net, requested: services=1, used: services=3, limited: services=3`, "services"},
		{`pods "g-worker-0" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`, refusal.Finalizers, "", "g-worker-0", "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>", "pods"},
		{`pods "g-worker-0" is forbidden: status unknown for quota: gpus, resources: requests.nvidia.com/gpu`, refusal.Passing, "gpus", "g-worker-0", "status unknown for quota: gpus, resources: requests.nvidia.com/gpu", "pods"},
		{`Error creating: Operation cannot be fulfilled on resourcequotas "gpus": the object has been modified`, refusal.Passing, "", "", `Operation cannot be fulfilled on resourcequotas "gpus": the object has been modified`, "pods"},
		{`Error creating: Post "https://10.96.0.1:443/api/v1/namespaces/team/pods": dial tcp 10.96.0.1:443: connect: connection refused`, refusal.Passing, "", "", `Post "https://10.96.0.1:443/api/v1/namespaces/team/pods": dial tcp 10.96.0.1:443: connect: connection refused`, "pods"},
		{`Error creating: the server is currently unable to handle the request`, refusal.Passing, "", "", `the server is currently unable to handle the request`, "pods"},
		{`Error creating: Timeout: request did not complete within requested timeout - context deadline exceeded`, refusal.Passing, "", "", `Timeout: request did not complete within requested timeout - context deadline exceeded`, "pods"},
		{`admission webhook "policy.example.com" denied the request: dial tcp 10.0.0.1:5000: connection refused`, refusal.Webhook, "policy.example.com", "", "dial tcp 10.0.0.1:5000: connection refused", "pods"},
		{`Pod "g-worker-0" is invalid: spec.containers[0].image: Required value`, refusal.Other, "", "", `Pod "g-worker-0" is invalid: spec.containers[0].image: Required value`, "pods"},
	}
	for _, tt := range tests {
		r := refusal.Parse(tt.text)
		if r.Kind != tt.kind || r.Object != tt.object || r.Pod != tt.pod || r.Message != tt.message || r.Resource() != tt.res || r.Raw != tt.text {
			t.Errorf("%s:\n got %+v", tt.text, r)
		}
	}
}

// The amounts in the refusal by a quota; what is no quantity is left out.
func TestRefusedAmounts(t *testing.T) {
	r := refusal.Parse("exceeded quota: gpus, requested: cpu=1, used: cpu=4,requests.nvidia.com/gpu=16,memory=8Gi,count=many,, limited: cpu=8")
	used, limit, ok := r.Amounts()
	cpu, gpus, most := used["cpu"], used["requests.nvidia.com/gpu"], limit["cpu"]
	if !ok || len(used) != 3 || cpu.Value() != 4 || gpus.Value() != 16 || len(limit) != 1 || most.Value() != 8 {
		t.Errorf("got %v, %v, %v", used, limit, ok)
	}
	if _, _, ok := refusal.Parse("no amounts").Amounts(); ok {
		t.Error("amounts out of nothing")
	}
}
