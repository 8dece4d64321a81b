package planner

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Objects are the same whatever the order in which a lister has them, until one is another object, is gone or is new.
func TestReferredAreTheSame(t *testing.T) {
	volume, slice := &corev1.PersistentVolume{}, &resourceapi.ResourceSlice{}
	of := func(volumes []*corev1.PersistentVolume, slices ...*resourceapi.ResourceSlice) *placement.Objects {
		return &placement.Objects{PersistentVolumes: volumes, ResourceSlices: slices}
	}
	listed := 0
	latest := func(known *referred, versions string, now *placement.Objects) *placement.Objects {
		t.Helper()
		got, err := known.latest(nil, versions, func(o *placement.Objects) error { listed++; *o = *now; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	other := &corev1.PersistentVolume{}
	first := of([]*corev1.PersistentVolume{volume, other}, slice)
	for name, c := range map[string]struct {
		now  *placement.Objects
		want bool
	}{
		"as before":        {of([]*corev1.PersistentVolume{volume, other}, slice), true},
		"in another order": {of([]*corev1.PersistentVolume{other, volume}, slice), true},
		"one is changed":   {of([]*corev1.PersistentVolume{volume, other.DeepCopy()}, slice), false},
		"one is gone":      {of([]*corev1.PersistentVolume{volume}, slice), false},
		"one is new":       {of([]*corev1.PersistentVolume{volume, other}, slice, &resourceapi.ResourceSlice{}), false},
		"of another kind":  {of([]*corev1.PersistentVolume{volume, other, {}}), false},
	} {
		var known referred
		before := latest(&known, "1 1", first)
		if got := known.same(c.now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		listed = 0
		if got := latest(&known, "1 1", c.now); got != before || listed > 0 {
			t.Errorf("%s: objects of the same versions are listed", name)
		}
		if got := latest(&known, "1 2", c.now); (got == before) != c.want || !known.same(c.now) || listed != 1 {
			t.Errorf("%s: the latest are those before: %t", name, got == before)
		}
		if latest(&known, "", c.now); listed != 2 {
			t.Errorf("%s: objects of unknown versions are not listed", name)
		}
	}
	if (&referred{}).same(&placement.Objects{}) {
		t.Error("before any are known")
	}
}

// A pod that keeps all but its own namespace off its node, by the labels of namespaces, keeps no gang of that namespace off: the gang is planned, and
// no proof says that there is no room.
func TestAntiAffinityOfANamespaceToOthers(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"default", "other"} {
		r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("namespaces"),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}, ""))
	}
	r.node("n1", "nvidia.com/gpu", "4")
	there := func(name, namespace, node string) {
		p := pod(name, "", "cpu", "1")
		p.Namespace, p.Spec.NodeName = namespace, node
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{namespace},
			}}},
		}}}}
		r.create(p)
	}
	there("own", "default", "n1")
	r.node("n2", "nvidia.com/gpu", "4")
	there("foreign", "other", "n2")
	r.knowsNodes()
	poll.Until(r, "the engine knows the pods", func() bool { n, err := r.engine.Cache.PodCount(); return err == nil && n == 2 })
	r.gang("g", 2)
	r.create(member("g", 0, "nvidia.com/gpu", "2"), member("g", 1, "nvidia.com/gpu", "2"))
	r.bound("g-0", "g-1")
	if places := r.places(); places["g-0"] != "n1" || places["g-1"] != "n1" {
		t.Errorf("%v", places)
	}
	r.gang("h", 1)
	r.create(member("h", 0, "nvidia.com/gpu", "2"))
	r.parked("h") // n2 is not for it
}

// Roles of pods that refer to nothing leave the cluster, and what is kept of its nodes, as they are for others. The engine has nothing to do meanwhile.
func TestRolesUseTheClusterOfTheView(t *testing.T) {
	r := newRig(t)
	view, plain, mounting := r.planner.View(), member("g", 0, "cpu", "1"), member("h", 0, "cpu", "1")
	mounting.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	cluster, err := view.Cluster([]*corev1.Pod{plain, mounting})
	r.must(err)
	before := r.planner.index.Objects()
	roles, err := view.Roles(cluster, []*corev1.Pod{plain}, gang.Topology{})
	r.must(err)
	if len(roles) != 1 || r.planner.index.Objects() != before {
		t.Errorf("%d roles, and the index has other objects", len(roles))
	}
}
