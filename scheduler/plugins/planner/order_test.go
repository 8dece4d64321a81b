package planner

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// queued is a gang in the engine's order.
func queued(t *testing.T, pods ...*corev1.Pod) *framework.QueuedPodGroupInfo {
	g := &framework.QueuedPodGroupInfo{PodGroupInfo: &framework.PodGroupInfo{Namespace: "default", Name: "g", Type: fwk.PodGroupKeyType}}
	g.QueuedPodInfos = map[fwk.EntityKey][]*framework.QueuedPodInfo{}
	key := fwk.PodGroupKey("default", "g")
	for _, p := range pods {
		info, err := framework.NewPodInfo(p)
		if err != nil {
			t.Fatal(err)
		}
		g.QueuedPodInfos[key] = append(g.QueuedPodInfos[key], &framework.QueuedPodInfo{PodInfo: info})
	}
	return g
}

func (c *cycle) names() []string {
	var names []string
	for _, p := range c.pods() {
		names = append(names, p.Name)
	}
	return names
}

func TestOrder(t *testing.T) {
	follower := member("g", 0)
	follower.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: "rack", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "chief"}},
	}}}}
	d := newFixture()
	gang := queued(t, follower, member("g", 1), member("g", 2), member("g", 3))
	d.begin(gang)
	if got, want := d.current.names(), []string{"g-1", "g-2", "g-3", "g-0"}; !slices.Equal(got, want) {
		t.Errorf("%v come up, want %v: those that follow others last", got, want)
	}
	v := verdict{sequence: []types.UID{"uid-g-3", "uid-g-1", "uid-g-0"}, nodes: map[types.UID]string{"uid-g-0": "n", "uid-g-1": "n", "uid-g-3": "n"}}
	d.setVerdict(d.current, &v, d.current.pods()[0])
	d.current.order(&plan{verdict: v}, d.current.pods()[0], false)
	if got, want := d.current.names(), []string{"g-1", "g-3", "g-0", "g-2"}; !slices.Equal(got, want) {
		t.Errorf("%v come up, want %v: the first is up, the one without a place comes last", got, want)
	}

	// g-1 came before g-3, which the placement does not allow.
	if !d.refusedForOrder(d.current.members()[0].Pod) {
		t.Fatal("a member that came too early is not known as such")
	}
	d.end(group, fwk.NewStatus(fwk.Unschedulable))
	if again := d.close(); len(again) != 1 {
		t.Fatal("the gang is not tried again at once")
	}
	d.begin(gang)
	if got, want := d.current.names()[0], "g-3"; got != want {
		t.Errorf("%s comes first, want %s", got, want)
	}
	d.setVerdict(d.current, &v, d.current.pods()[0])
	if d.refusedForOrder(d.current.members()[0].Pod) {
		t.Error("the member that has to come first came too early")
	}
	d.end(group, fwk.NewStatus(fwk.Unschedulable))
	if again := d.close(); len(again) != 0 || !d.isParked(group) {
		t.Error("a gang that fails in the right order is tried without end")
	}
}
