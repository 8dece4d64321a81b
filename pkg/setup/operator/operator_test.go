package operator

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

const v194 = "ghcr.io/kubeflow/training-v1/training-operator:v1-93c5489"

// deployed is a Deployment of one container, with its command line.
func deployed(image, line string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeflow", Name: "training-operator"}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "training-operator", Image: image, Command: strings.Fields(line)}}
	return d
}

func one(t *testing.T, d *appsv1.Deployment) Operator {
	t.Helper()
	found := Find([]*appsv1.Deployment{d})
	if len(found) != 1 {
		t.Fatalf("%d operators", len(found))
	}
	return found[0]
}

func TestReleaseOf(t *testing.T) {
	tests := []struct{ image, want string }{
		{v194, "v1.9.4"},
		{v194 + "@sha256:0", "v1.9.4"},
		{"mirror.example:5000/training-operator:v1-04f9f13", "v1.8.1"},
		{"kubeflow/training-operator:v1-855e096", "v1.7.0"},
		{"kubeflow/training-operator:v1.8.0-rc.0", "v1.8.0"},
		{"mirror.example/training-operator:1.9", "v1.9"},
		{"public.ecr.aws/j1r0q0g6/training/training-operator:4485b0aa", "v1.3 or later"},
		{"public.ecr.aws/j1r0q0g6/training/tf-operator:cd2fc1ff", "v1.1 or later"},
		{"docker.io/kubeflow/training-operator:latest", "v1.5 or later"},
		{"ghcr.io/kubeflow/training-v1/training-operator:latest", "v1.9 or later"},
		{"gcr.io/kubeflow-images-public/tf_operator:v0.5.3", "v0.5.3"},
		{"mirror.example/training-operator:prod", "of unknown release"},
		{"mirror.example/training-operator", "of unknown release"},
	}
	for _, tt := range tests {
		if got := releaseOf(tt.image).String(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.image, got, tt.want)
		}
	}
	if _, err := ParseRelease("newest"); err == nil {
		t.Error("nonsense is a release")
	}
}

func TestFind(t *testing.T) {
	labelled := deployed("mirror.example/renamed:1", "/manager")
	labelled.Spec.Template.Labels = map[string]string{"control-plane": "kubeflow-training-operator"}
	sidecar := deployed(v194, "/manager")
	sidecar.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "proxy", Image: "proxy:1"}}, sidecar.Spec.Template.Spec.Containers...)
	tests := []struct {
		name string
		d    *appsv1.Deployment
		at   int
	}{
		{"by its image", deployed(v194, "/manager"), 0},
		{"by its label", labelled, 0},
		{"alongside a sidecar", sidecar, 1},
		{"of old", deployed("gcr.io/kubeflow-images-public/tf_operator:v0.4.0", "/opt/kubeflow/tf-operator.v1beta1"), 0},
		{"for TFJobs among others", deployed(v194, "/manager --enable-scheme=pytorchjob --enable-scheme=TFJob"), 0},
		{"for other kinds", deployed(v194, "/manager --enable-scheme=pytorchjob"), -1},
		{"something else", deployed("nginx:1", "nginx"), -1},
		{"the trainer, which knows no TFJobs", deployed("ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.1.0", "/manager"), -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found := Find([]*appsv1.Deployment{tt.d})
			if len(found) > 0 != (tt.at >= 0) || len(found) > 0 && found[0].Index != tt.at {
				t.Errorf("got %v", found)
			}
		})
	}
	if got := one(t, deployed(v194, "")).Account(); got != (rbac.Account{Namespace: "kubeflow", Name: "default"}) {
		t.Errorf("account %v", got)
	}
}

func TestMode(t *testing.T) {
	const v12, v15, v16, v17 = "x/tf-operator:v1.2.0", "kubeflow/training-operator:v1-e1434f6", "kubeflow/training-operator:v1-5a5f92d", "kubeflow/training-operator:v1-855e096"
	tests := []struct {
		name, image, line string
		want              Mode
		problem           bool
	}{
		{name: "no flag", image: v194, line: "/manager"},
		{name: "none", image: v194, line: "/manager --gang-scheduler-name=none"},
		{name: "ours", image: v194, line: "/manager --gang-scheduler-name=gang-scheduler", want: Mode{On: true, Scheduler: "gang-scheduler", Group: "scheduling.x-k8s.io"}},
		{name: "v1.7, in two arguments", image: v17, line: "/manager --gang-scheduler-name gang-scheduler", want: Mode{On: true, Scheduler: "gang-scheduler", Group: "scheduling.x-k8s.io"}},
		{name: "Volcano", image: v17, line: "/manager --gang-scheduler-name=Volcano", want: Mode{On: true, Scheduler: Volcano, Group: "scheduling.volcano.sh"}},
		{name: "the old flag on a new release", image: v194, line: "/manager --enable-gang-scheduling", problem: true},
		{name: "v1.6", image: v16, line: "/manager --gang-scheduler-name=scheduler-plugins", want: Mode{On: true, Group: "scheduling.sigs.k8s.io"}},
		{name: "v1.6 with Volcano", image: v16, line: "/manager --gang-scheduler-name=volcano", want: Mode{On: true, Scheduler: Volcano, Group: "scheduling.volcano.sh"}},
		{name: "v1.5", image: v15, line: "/manager --enable-gang-scheduling=true", want: Mode{On: true, Scheduler: Volcano, Group: "scheduling.volcano.sh"}},
		{name: "v1.5, off", image: v15, line: "/manager --enable-gang-scheduling=false", want: Mode{Scheduler: Volcano, Group: "scheduling.volcano.sh"}},
		{name: "v1.5, half", image: v15, line: "/manager --gang-scheduler-name=volcano", want: Mode{Scheduler: Volcano, Group: "scheduling.volcano.sh"}, problem: true},
		{name: "v1.2", image: v12, line: "/opt/kubeflow/tf-operator.v1 --enable-gang-scheduling", want: Mode{On: true, Scheduler: Volcano, Group: "scheduling.volcano.sh"}},
		{name: "v0.5", image: "x/tf_operator:v0.5.0", line: "/tf --enable-gang-scheduling", want: Mode{On: true, Scheduler: "kube-batch", Group: "scheduling.incubator.k8s.io"}},
		{name: "v0.4", image: "x/tf_operator:v0.4.0", line: "/tf --enable-gang-scheduling", want: Mode{On: true, Group: "policy"}},
		{name: "unknown, the new flag", image: "x/training-operator:prod", line: "/manager --gang-scheduler-name=a", want: Mode{On: true, Scheduler: "a", Group: "scheduling.x-k8s.io"}},
		{name: "unknown, the old flag", image: "x/training-operator:prod", line: "/manager --enable-gang-scheduling", want: Mode{On: true, Scheduler: Volcano, Group: "scheduling.volcano.sh"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := one(t, deployed(tt.image, tt.line)).Mode()
			if (got.Problem != "") != tt.problem {
				t.Errorf("ambiguous: %q", got.Problem)
			}
			if got.Problem = ""; got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// The flags that Flags returns have their effect on the release, or Flags returns an error.
func TestFlags(t *testing.T) {
	tests := []struct {
		image, scheduler string
		flag, err        string
	}{
		{v194, "gang-scheduler", "--gang-scheduler-name=gang-scheduler", ""},
		{"kubeflow/training-operator:v1-855e096", "volcano", "--gang-scheduler-name=volcano", ""},
		{"kubeflow/training-operator:v1-5a5f92d", "volcano", "--gang-scheduler-name=volcano", ""},
		{"kubeflow/training-operator:v1-5a5f92d", "gang-scheduler", "", "gang-scheduler would not see them"},
		{"kubeflow/training-operator:v1-e1434f6", "volcano", "--enable-gang-scheduling=true", ""},
		{"kubeflow/training-operator:v1-e1434f6", "gang-scheduler", "", "for scheduler volcano only"},
		{"kubeflow/training-operator:latest", "gang-scheduler", "", "depends on its release"},
		{"ghcr.io/kubeflow/training-v1/training-operator:latest", "gang-scheduler", "--gang-scheduler-name=gang-scheduler", ""},
		{"x/training-operator:prod", "gang-scheduler", "", "of unknown release"},
	}
	for _, tt := range tests {
		t.Run(tt.image+" "+tt.scheduler, func(t *testing.T) {
			flags, err := one(t, deployed(tt.image, "/manager")).Flags(tt.scheduler)
			if strings.Join(flags, " ") != tt.flag || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("got %q, %v", flags, err)
			}
			if err != nil {
				return
			}
			m := one(t, deployed(tt.image, "/manager "+flags[0])).Mode()
			if !m.On || m.Problem != "" || m.Scheduler != tt.scheduler {
				t.Errorf("with the flag it is %+v", m)
			}
		})
	}
}

func TestNeeds(t *testing.T) {
	rules := func(o Operator) string {
		var all []string
		for _, n := range o.Needs() {
			for _, r := range n.Rules {
				all = append(all, rbac.String(r))
			}
		}
		return strings.Join(all, "; ")
	}
	off := rules(one(t, deployed(v194, "/manager")))
	for _, want := range []string{"tfjobs.kubeflow.org/status", "create, delete, list, patch, watch pods", "events"} {
		if !strings.Contains(off, want) {
			t.Errorf("%q is not needed: %s", want, off)
		}
	}
	for _, never := range []string{"podgroups", "secrets", "leases", "*"} {
		if strings.Contains(off, never) {
			t.Errorf("%q is needed: %s", never, off)
		}
	}
	d := deployed(v194, "/manager --gang-scheduler-name=gang-scheduler --leader-elect")
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "cert", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "training-operator-webhook-cert"}}}}
	on := rules(one(t, d))
	for _, want := range []string{"create, delete, get, list, update, watch podgroups.scheduling.x-k8s.io", "secrets", "validatingwebhookconfigurations", "create, get, update leases.coordination.k8s.io"} {
		if !strings.Contains(on, want) {
			t.Errorf("%q is not needed: %s", want, on)
		}
	}
	if old := rules(one(t, deployed("x/tf_operator:v0.4.0", "/tf --enable-gang-scheduling"))); !strings.Contains(old, "create, delete, get poddisruptionbudgets.policy") {
		t.Errorf("v0.4 needs %s", old)
	}
}
