package view

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
)

// someJobs is a cluster with some nodes, and jobs with a PodGroup and pods each.
func someJobs(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	s := &snapshot.Snapshot{At: time.Unix(10000, 0)}
	put := func(obj *unstructured.Unstructured) {
		if err := s.Put(obj); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		s.Nodes = append(s.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}})
	}
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "tensorflow"}}}}
	for i := range 8 {
		name := fmt.Sprintf("job%d", i)
		put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"namespace": "team", "name": name, "uid": name},
			"spec": map[string]any{"tfReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": int64(3), "template": template}}}}})
		put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "team", "name": name, "uid": "pg-" + name},
			"spec": map[string]any{"minMember": int64(3)}}})
		for j := range 3 {
			node := fmt.Sprintf("n%d", (i+j)%6)
			if i == 7 { // it waits
				node = ""
			}
			s.Pods = append(s.Pods, podOf(name, j, node))
		}
	}
	s.Finish()
	return s
}

func podOf(job string, i int, node string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("%s-worker-%d", job, i), UID: types.UID(fmt.Sprintf("%s/%d/%s", job, i, node)),
		Labels:          map[string]string{"scheduling.x-k8s.io/pod-group": job},
		OwnerReferences: []metav1.OwnerReference{{Kind: "TFJob", APIVersion: "kubeflow.org/v1", Name: job, UID: types.UID(job), Controller: &yes}}}}
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	return p
}

// change returns a snapshot in which some things are different, as what-ifs make them.
func change(r *rand.Rand, before *snapshot.Snapshot) *snapshot.Snapshot {
	s := before.Clone()
	for range 1 + r.IntN(3) {
		switch r.IntN(9) {
		case 0: // pods are gone
			s.Pods = slices.DeleteFunc(s.Pods, func(*corev1.Pod) bool { return r.IntN(5) == 0 })
		case 1: // a pod is elsewhere
			if len(s.Pods) > 0 {
				i := r.IntN(len(s.Pods))
				p := s.Pods[i].DeepCopy()
				p.Spec.NodeName = fmt.Sprintf("n%d", r.IntN(6))
				s.Pods[i] = p
			}
		case 2: // there is one more
			s.Pods = append(s.Pods, podOf(fmt.Sprintf("job%d", r.IntN(8)), 10+r.IntN(100), fmt.Sprintf("n%d", r.IntN(6))))
		case 3: // a node is gone, with its pods
			if len(s.Nodes) > 1 {
				s.Nodes = slices.Delete(s.Nodes, 0, 1)
			}
		case 4: // one is new, and one is another
			s.Nodes = append(s.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("new%d", r.IntN(1000))}})
			s.Nodes[0] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Nodes[0].Name, Labels: map[string]string{"x": "y"}}}
		case 6: // pods without a node are made again
			for i, p := range s.Pods {
				if p.Spec.NodeName == "" {
					s.Pods[i] = p.DeepCopy()
					s.Pods[i].Labels["again"] = "yes"
				}
			}
		case 7: // a job is submitted again
			list := s.Custom[schema.GroupKind{Group: "kubeflow.org", Kind: "TFJob"}]
			if len(list) > 0 {
				i := r.IntN(len(list))
				list[i] = list[i].DeepCopy()
				list[i].SetLabels(map[string]string{"again": "yes"})
			}
		case 8: // a job has ended
			list := s.Custom[schema.GroupKind{Group: "kubeflow.org", Kind: "TFJob"}]
			if len(list) > 0 {
				i := r.IntN(len(list))
				list[i] = list[i].DeepCopy()
				list[i].Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Succeeded", "status": "True", "lastTransitionTime": "1970-01-01T02:46:40Z"}}}
			}
		case 5: // jobs and groups are gone
			for kind, list := range s.Custom {
				s.Custom[kind] = slices.DeleteFunc(list, func(*unstructured.Unstructured) bool { return r.IntN(6) == 0 })
			}
		}
	}
	return s
}

// A view that is derived from another equals one that is made from nothing.
func TestDerivedViews(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := someJobs(t)
		w := New(s)
		for range 3 {
			s = change(r, s)
			w = w.Assume(s)
			if got, want := describe(w), describe(New(s)); got != want {
				t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, got, want)
			}
		}
	}
}

// describe writes what a view holds.
func describe(w *View) string {
	text := ""
	names := func(pods []*corev1.Pod) (all []string) {
		for _, p := range pods {
			all = append(all, p.Name+"@"+p.Spec.NodeName)
		}
		slices.Sort(all)
		return all
	}
	for _, s := range w.Jobs() {
		text += fmt.Sprintf("%s: %v\n", s.Name(), names(w.podsOf(s)))
	}
	for i := range 8 {
		uid := types.UID(fmt.Sprintf("job%d", i))
		text += fmt.Sprintf("%s: %v\n", uid, names(w.byController().of(gang.Identity{Namespace: "team", UID: uid})))
	}
	for _, h := range w.Consumers() {
		text += fmt.Sprintf("%s %s %t %s: %v", h.Kind, h, h.Ends, h.Deadline, names(h.Pods))
		if h.Job != nil {
			text += fmt.Sprintf(" of %s %v %v", h.Job.Name(), h.Job.Meta.Labels, h.Job.End)
		}
		text += "\n"
	}
	for _, p := range w.Snap.Pods {
		text += fmt.Sprintf("%s@%s %v\n", p.Name, w.Pod(p.Namespace, p.Name).Spec.NodeName, w.Pod(p.Namespace, p.Name).Labels)
	}
	text += fmt.Sprintln(w.Pod("team", "job3-worker-1") != nil, len(w.Best(nil).Nodes()))
	for _, d := range w.Groups() {
		job := "none"
		if s := w.JobOfGroup(d); s != nil {
			job = s.Name()
		}
		text += fmt.Sprintf("%s of %s: %v\n", d.Key.Name, job, names(w.GroupPods(d)))
	}
	for _, n := range w.Cluster().Nodes() {
		text += fmt.Sprintf("%s %v: %v\n", n.Name, n.Labels, names(w.Cluster().PodsOn(n.Name)))
	}
	return text
}

// What two lists do not have in common does not depend on their order.
func TestDifference(t *testing.T) {
	pod := func(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	a, b, b2, c, d := pod("a"), pod("b"), pod("b"), pod("c"), pod("d")
	tests := []struct{ before, after, gone, more []*corev1.Pod }{
		{[]*corev1.Pod{a, b, c}, []*corev1.Pod{a, b, c}, nil, nil},
		{[]*corev1.Pod{a, b, c}, []*corev1.Pod{a, c}, []*corev1.Pod{b}, nil},
		{[]*corev1.Pod{a, b, c}, []*corev1.Pod{a, b2, c, d}, []*corev1.Pod{b}, []*corev1.Pod{b2, d}},
		{[]*corev1.Pod{b, c, d}, []*corev1.Pod{c, d, a}, []*corev1.Pod{b}, []*corev1.Pod{a}},
		{[]*corev1.Pod{a, b, c, d}, []*corev1.Pod{d, c, b2, a}, []*corev1.Pod{b}, []*corev1.Pod{b2}},
		{nil, []*corev1.Pod{a}, nil, []*corev1.Pod{a}},
	}
	for i, tt := range tests {
		gone, more := difference(tt.before, tt.after)
		if !slices.Equal(gone, tt.gone) || !slices.Equal(more, tt.more) {
			t.Errorf("%d: gone %v, more %v", i, gone, more)
		}
	}
}

func TestJobsShareTemplates(t *testing.T) {
	jobs := New(someJobs(t)).Jobs()
	for _, s := range jobs {
		if &s.Roles[0].Template.Spec.Containers[0] != &jobs[0].Roles[0].Template.Spec.Containers[0] {
			t.Errorf("%s has a template of its own", s.Name())
		}
	}
}

func TestOnce(t *testing.T) {
	w, calls := New(&snapshot.Snapshot{}), 0
	count := func() int { calls++; return calls }
	for i, want := range []int{1, 1} {
		if got := Once(w, "a", count); got != want {
			t.Errorf("%d. time: got %d", i+1, got)
		}
	}
	if Once(w, "b", count) != 2 || Once(New(&snapshot.Snapshot{}), "a", count) != 3 {
		t.Errorf("%d calls", calls)
	}
}

// An owner finds the job of a group, and so do the pods that name it; nothing finds the job of one that has neither.
func TestJobOfGroup(t *testing.T) {
	w := New(someJobs(t))
	for _, tt := range []struct {
		d    gang.Declaration
		want string
	}{
		{gang.Declaration{Key: gang.Key{Namespace: "team"}, Owner: "job2"}, "team/job2"},
		{gang.Declaration{Key: gang.Key{Namespace: "other"}, Owner: "job2"}, ""},
		{gang.Declaration{Key: gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "team", Name: "job3"}}, "team/job3"},
		{gang.Declaration{Key: gang.Key{Dialect: gang.SchedulerPlugins, Namespace: "other", Name: "job3"}}, ""},
	} {
		got := ""
		if s := w.JobOfGroup(tt.d); s != nil {
			got = s.Name()
		}
		if got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.d, got, tt.want)
		}
	}
}
