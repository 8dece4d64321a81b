package collect

import (
	"maps"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/page"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
)

const (
	roleLabel, indexLabel       = "training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index"
	podNameLabel, podIndexLabel = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
)

// lean decodes settled pods of these names and labels, as Collect does when it is to be lean; named is what some object selects by.
func lean(t *testing.T, named string, pods map[string]map[string]string) map[string]*corev1.Pod {
	t.Helper()
	o := Options{Namespace: "team", Name: "llama", Lean: true, numbering: newNumbering()}
	got := map[string]*corev1.Pod{}
	for name, labels := range pods {
		p := worker()
		p.Name, p.Labels = name, maps.Clone(labels)
		if named != "" && name == "j-worker-0" {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "k", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{named: "1"}}}}
		}
		got[name] = decodePod(t, o, p)
	}
	o.numbering.finish()
	return got
}

var numbered = map[string]map[string]string{
	"j-worker-0":     {roleLabel: "worker", indexLabel: "0", "job": "j"},
	"j-worker-12":    {roleLabel: "Worker", indexLabel: "12", "job": "j"},
	"j-worker-3":     {roleLabel: "worker", indexLabel: "4"},                    // the name says something else
	"j-ps-1":         {roleLabel: "worker", indexLabel: "1"},                    // of another role
	"j-worker-24567": {roleLabel: "worker", indexLabel: "24567"},                // may be random
	"lonely-5":       {indexLabel: "5"},                                         // no role
	"web-2":          {podNameLabel: "web-2", podIndexLabel: "2", "app": "web"}, // a StatefulSet's
	"web-3":          {podNameLabel: "web-4", podIndexLabel: "03"},
	"plain":          {"replica-index": "plain"},
}

func TestLabelsThatNamesImplyAreLeftOut(t *testing.T) {
	want := maps.Clone(numbered)
	want["j-worker-0"] = map[string]string{roleLabel: "worker", "job": "j"}
	want["j-worker-12"] = map[string]string{roleLabel: "Worker", "job": "j"}
	want["web-2"] = map[string]string{"app": "web"}
	for name, pod := range lean(t, "", numbered) {
		if !reflect.DeepEqual(pod.Labels, want[name]) {
			t.Errorf("%s: got %v, want %v", name, pod.Labels, want[name])
		}
		whole := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: numbered[name]}}
		at, ok := kubeflow.PlaceOf(whole)
		if left, still := kubeflow.PlaceOf(pod); left != at || still != ok {
			t.Errorf("%s: its place was %v %v and is %v %v", name, at, ok, left, still)
		}
	}
}

// A rule that selects by such a label must find it.
func TestLabelsThatSomethingNamesStay(t *testing.T) {
	for _, named := range []string{indexLabel, podIndexLabel, "replica-index"} {
		for name, pod := range lean(t, named, numbered) {
			if !reflect.DeepEqual(pod.Labels, numbered[name]) {
				t.Errorf("%s is named: %s has %v, not %v", named, name, pod.Labels, numbered[name])
			}
		}
	}
}

func TestLabelsAreNamedInAnyKind(t *testing.T) {
	job := `{"metadata":{"name":"j","namespace":"other"},"spec":{"tfReplicaSpecs":{"Worker":{"template":{"spec":{"affinity":{"k":"` + indexLabel + `"}}}}}}}`
	for _, named := range []bool{true, false} {
		n := newNumbering()
		decode, err := untyped("v1", schema.GroupKind{Group: trainingGroup, Kind: "TFJob"})(Options{Namespace: "team", Lean: true, numbering: n})
		if err != nil {
			t.Fatal(err)
		}
		raw := `{"metadata":{"name":"j","namespace":"other"}}`
		if named {
			raw = job
		}
		if _, err := decode(page.Item{Raw: []byte(raw)}); err != nil || n.named.Load() != named {
			t.Errorf("named %v: %v, %v", named, n.named.Load(), err)
		}
	}
}

func TestLabelsAreWholeUnlessLean(t *testing.T) {
	p := worker()
	p.Name, p.Labels = "j-worker-0", maps.Clone(numbered["j-worker-0"])
	if got := decodePod(t, Options{Namespace: "team", Name: "llama"}, p); !reflect.DeepEqual(got.Labels, numbered["j-worker-0"]) {
		t.Errorf("got %v", got.Labels)
	}
}
