package stages

import "testing"

// What API servers say, word by word.
func TestParseRefusal(t *testing.T) {
	tests := []struct {
		text         string
		kind         refusalKind
		object, pod  string
		message, res string
	}{
		{`Error creating: pods "g-worker-1" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=16, limited: requests.nvidia.com/gpu=16`, refusedQuota, "gpus", "g-worker-1",
			"exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=16, limited: requests.nvidia.com/gpu=16", "pods"},
		{`Error creating: pods "g-worker-1" is forbidden: failed quota: q: must specify limits.cpu for: tensorflow; limits.memory for: tensorflow`, refusedNoField, "q", "g-worker-1", "failed quota: q: must specify limits.cpu for: tensorflow; limits.memory for: tensorflow", "pods"},
		{`pods "g-worker-1" is forbidden: [maximum cpu usage per Container is 16, but limit is 32, maximum memory usage per Container is 64Gi, but limit is 100Gi]`, refusedLimit, "cpu", "g-worker-1", "[maximum cpu usage per Container is 16, but limit is 32, maximum memory usage per Container is 64Gi, but limit is 100Gi]", "pods"},
		{`pods "g-worker-1" is forbidden: minimum memory usage per Pod is 1Gi, but request is 512Mi`, refusedLimit, "memory", "g-worker-1", "minimum memory usage per Pod is 1Gi, but request is 512Mi", "pods"},
		{`pods "g-worker-1" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000`, refusedLimit, "", "g-worker-1", "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000", "pods"},
		{`admission webhook "policy.example.com" denied the request: missing label team`, refusedWebhook, "policy.example.com", "", "missing label team", "pods"},
		{`Error creating: admission webhook "validate.kyverno.svc-fail" denied the request: ` + "\n\nresource Pod/team/g was blocked\n\n  a: b\n", refusedWebhook, "validate.kyverno.svc-fail", "", "resource Pod/team/g was blocked a: b", "pods"},
		{`pods "g-worker-0" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`, refusedWebhook, `PodSecurity "restricted:latest"`, "g-worker-0", `violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`, "pods"},
		{`pods "g-worker-0" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, refusedWebhook, "ValidatingAdmissionPolicy 'p'", "g-worker-0", "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", "pods"},
		{`Internal error occurred: failed calling webhook "m.example.com": failed to call webhook: Post "https://hook.infra.svc:443/?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused`, refusedCall, "m.example.com", "", `Internal error occurred: failed calling webhook "m.example.com": failed to call webhook: Post "https://hook.infra.svc:443/?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused`, "pods"},
		{`Internal error occurred: failed calling admission webhook "old.example.com": Post: EOF`, refusedCall, "old.example.com", "", `Internal error occurred: failed calling admission webhook "old.example.com": Post: EOF`, "pods"},
		{`pods "g-worker-0" is forbidden: no PriorityClass with name gold was found`, refusedPriority, "gold", "g-worker-0", "no PriorityClass with name gold was found", "pods"},
		{`pods "g-worker-0" is forbidden: error looking up service account team/trainer: serviceaccount "trainer" not found`, refusedAccount, "trainer", "g-worker-0", `error looking up service account team/trainer: serviceaccount "trainer" not found`, "pods"},
		{`pods "g-worker-0" is forbidden: pod rejected: RuntimeClass "gvisor" not found`, refusedRuntime, "gvisor", "g-worker-0", `pod rejected: RuntimeClass "gvisor" not found`, "pods"},
		{`pods "g-worker-0" is forbidden: unable to create new content in namespace team because it is being terminated`, refusedNamespace, "terminated", "g-worker-0", "unable to create new content in namespace team because it is being terminated", "pods"},
		{`Error creating: pods is forbidden: User "system:serviceaccount:kubeflow:op" cannot create resource "pods" in API group "" in the namespace "team"`, refusedRights, "system:serviceaccount:kubeflow:op", "", `pods is forbidden: User "system:serviceaccount:kubeflow:op" cannot create resource "pods" in API group "" in the namespace "team"`, "pods"},
		{`services is forbidden: User "system:serviceaccount:kubeflow:op" cannot create resource "services" in API group "" in the namespace "team"`, refusedRights, "system:serviceaccount:kubeflow:op", "", `services is forbidden: User "system:serviceaccount:kubeflow:op" cannot create resource "services" in API group "" in the namespace "team"`, "services"},
		{`Pod "g-worker-0" is invalid: spec.containers[0].image: Required value`, refusedOther, "", "", `Pod "g-worker-0" is invalid: spec.containers[0].image: Required value`, "pods"},
	}
	for _, tt := range tests {
		r := parseRefusal(tt.text)
		if r.kind != tt.kind || r.object != tt.object || r.pod != tt.pod || r.message != tt.message || r.resource() != tt.res || r.raw != tt.text {
			t.Errorf("%s:\n got %+v", tt.text, r)
		}
	}
}

func TestAmountsIn(t *testing.T) {
	list := amountsIn("cpu=4,requests.nvidia.com/gpu=16,memory=8Gi,count=many,")
	cpu, gpus := list["cpu"], list["requests.nvidia.com/gpu"]
	if len(list) != 3 || cpu.Value() != 4 || gpus.Value() != 16 {
		t.Errorf("got %v", list)
	}
}

func TestWords(t *testing.T) {
	tests := []struct{ got, want string }{
		{joinAnd(nil), ""}, {joinAnd([]string{"a"}), "a"}, {joinAnd([]string{"a", "b", "c"}), "a, b and c"}, {fraction(1, 2), "1/2"},
		{line("a\n\n  b\r\nc  "), "a b c"}, {line("  indented\n"), "  indented"}, {line("%d%%", 5), "5%"},
		{repository("reg.example.com:5000/kubeflow/training-operator:v1@sha256:0"), "training-operator"}, {repository("busybox"), "busybox"},
		{vendor("nvidia.com/gpu"), "nvidia.com"}, {isComing(1), "1 node is"}, {isComing(2), "2 nodes are"}, {isAre([]string{"n1"}), "n1 is"}, {isAre([]string{"n1", "n2"}), "n1, n2 are"},
		{pointer([]string{"spec", "capability", "nvidia.com/gpu"}), "/spec/capability/nvidia.com~1gpu"}, {jsonPath([]any{"spec", 0, "a/b"}), "/spec/0/a~1b"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
