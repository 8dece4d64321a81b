package scheduler

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
)

var llama = gang.Key{Dialect: gang.Labels, Namespace: namespace, Name: "llama"}

func TestPodsOfOtherSchedulersAreNoMembers(t *testing.T) {
	gangCycle(t)
	r := newRig(t)
	r.node("n1", 4)
	r.start()
	mark := func(pod *corev1.Pod) { labels.SetGroup(&pod.ObjectMeta, llama.Name, 2) }
	r.create(r.pod("theirs", "default-scheduler", mark, func(pod *corev1.Pod) { byField(pod, "native", 0) }), r.pod("ours", DefaultName, mark))
	r.waitMessage("ours", "1/2 pods exist")
	lister := r.factory.Core().V1().Pods().Lister().Pods(namespace)
	for name, want := range map[string]bool{"ours": true, "theirs": false} {
		pod, err := lister.Get(name)
		r.must(err)
		if got := pod.Spec.SchedulingGroup != nil; got != want {
			t.Errorf("%s is shown in a gang: %v", name, got)
		}
	}
}

// The objects of a gang come and go while it waits; what cannot be read is no
// reason to go on with what was read before.
func TestObjectsComeAndGo(t *testing.T) {
	gangCycle(t)
	r := newRig(t)
	d := dialects()[3]
	d.scheduler = DefaultName
	g := team{r, d}
	r.node("n1", 8)
	r.start()
	names := g.members("g", 0, 0, 3)
	r.waitMessage("g-0", "PodGroup research/g not found")
	r.crd(d.resource, true)
	g.declare("g", 4)
	r.waitMessage("g-0", "3/4 pods exist")
	objects := r.groups.Resource(d.resource).Namespace(namespace)
	u, err := objects.Get(t.Context(), "g", metav1.GetOptions{})
	r.must(err)
	u.Object["spec"] = map[string]any{"minMember": "three"}
	_, err = objects.Update(t.Context(), u, metav1.UpdateOptions{})
	r.must(err)
	r.waitMessage("g-0", "PodGroup research/g cannot be read")
	r.create(r.pod("g-3", DefaultName, func(pod *corev1.Pod) { g.mark(pod, "g", 0) })) // would be enough for the old minimum
	r.waitMessage("g-3", "cannot be read")
	r.crd(d.resource, false)
	r.waitMessage("g-0", "PodGroup research/g not found")
	u.Object["spec"] = minMember(4)
	_, err = objects.Update(t.Context(), u, metav1.UpdateOptions{})
	r.must(err)
	if n := r.placed(names...); n != 0 {
		t.Errorf("%d members placed meanwhile", n)
	}
	r.crd(d.resource, true)
	r.waitPlaced(append(names, "g-3")...)
}

// Members of different priorities run together, at the lowest.
func TestMixedPriorities(t *testing.T) {
	gangCycle(t)
	priority := func(n int32) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Spec.Priority = &n } }
	mark := func(pod *corev1.Pod) { labels.SetGroup(&pod.ObjectMeta, llama.Name, 3) }
	for _, launcherFirst := range []bool{true, false} {
		r := newRig(t)
		r.node("n1", 4)
		r.start()
		launcher := r.pod("launcher", DefaultName, mark, priority(100))
		workers := []*corev1.Pod{r.pod("w-0", DefaultName, mark, priority(0)), r.pod("w-1", DefaultName, mark, priority(0))}
		if launcherFirst {
			r.create(launcher)
		}
		r.create(workers...)
		r.create(r.pod("single", DefaultName, func(pod *corev1.Pod) { pod.Spec.NodeName = "n1" }))
		poll.Until(t, "the workers are known", func() bool { return len(r.cache.Pods(llama)) >= 2 })
		if !launcherFirst {
			r.create(launcher)
		}
		r.waitPlaced("launcher", "w-0", "w-1")
		group, _ := r.virtualGroups.Get(namespace, llama.VirtualName())
		if got := *group.Spec.Priority; got != 0 {
			t.Errorf("the gang has priority %d", got)
		}
		for _, c := range group.Status.Conditions {
			if c.Reason == "SchedulerError" {
				t.Errorf("launcher first %v: the engine saw members at odds: %s", launcherFirst, c.Message)
			}
		}
		if p := r.get("w-0").Spec.Priority; *p != 0 {
			t.Errorf("the priority of a worker was changed on the server, to %d", *p)
		}
	}
}

// Members may have several of the names that we serve, though the engine requires one of a group.
func TestMembersOfSeveralNamesOfOurs(t *testing.T) {
	gangCycle(t)
	r := newRig(t, "volcano", "kube-batch")
	mark := func(pod *corev1.Pod) { labels.SetGroup(&pod.ObjectMeta, llama.Name, 3) }
	r.node("n1", 8)
	r.start()
	r.create(r.pod("a", "kube-batch", mark), r.pod("b", DefaultName, mark), r.pod("c", "volcano", mark))
	r.waitPlaced("a", "b", "c")
	r.create(r.pod("d", DefaultName, mark), r.pod("e", "volcano", mark))
	r.waitPlaced("d", "e")
	if name := r.get("a").Spec.SchedulerName; name != "kube-batch" {
		t.Errorf("the schedulerName of a pod was changed on the server, to %s", name)
	}
}

// The engine takes no member of a gang while one of them claims what does not exist, and reports that to nobody.
func TestClaimsThatDoNotExistAreReported(t *testing.T) {
	gangCycle(t)
	r := newRig(t)
	claim, template := "gpu", "large"
	mark := func(pod *corev1.Pod) { labels.SetGroup(&pod.ObjectMeta, llama.Name, 2) }
	claims := func(of corev1.PodResourceClaim) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.ResourceClaims = []corev1.PodResourceClaim{of} }
	}
	r.node("n1", 4)
	r.start()
	r.create(r.pod("a", DefaultName, mark), r.pod("b", DefaultName, mark, claims(corev1.PodResourceClaim{Name: "c", ResourceClaimName: &claim})))
	r.waitMessage("a", "pod b: ResourceClaim gpu not found")
	r.waitMessage("b", "pod b: ResourceClaim gpu not found")
	r.delete("b")
	r.create(r.pod("c", DefaultName, mark, claims(corev1.PodResourceClaim{Name: "c", ResourceClaimTemplateName: &template})))
	r.waitMessage("c", "pod c: no ResourceClaim was made for it of ResourceClaimTemplate large")
}

// A member above the minimum claims what does not exist. The others start, and the engine tries it when its claim comes.
func TestAMemberAboveTheMinimumWithoutItsClaim(t *testing.T) {
	r := newRig(t)
	claim := "gpu"
	mark := func(pod *corev1.Pod) { labels.SetGroup(&pod.ObjectMeta, llama.Name, 2) }
	r.serveBuiltIn(resourcev1.SchemeGroupVersion.WithResource("resourceclaims"))
	r.node("n1", 4)
	r.startWhole()
	r.create(r.pod("a", DefaultName, mark, func(pod *corev1.Pod) {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &claim}}
	}), r.pod("b", DefaultName, mark), r.pod("c", DefaultName, mark))
	r.waitPlaced("b", "c")
	r.waitMessage("a", "pod waits for its claims: ResourceClaim gpu not found")
	if _, err := r.server.ResourceV1().ResourceClaims(namespace).Create(t.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: claim, UID: "gpu", ResourceVersion: r.version()},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lister := r.factory.Core().V1().Pods().Lister().Pods(namespace)
	poll.Until(t, "it is seen as a member", func() bool {
		pod, err := lister.Get("a")
		return err == nil && pod.Spec.SchedulingGroup != nil && len(pod.Spec.SchedulingGates) == 0
	})
}

// The engine keeps a gang aside until the claim of a member comes, also where the member is replaced by one without.
func TestAMemberThatClaimsWhatDoesNotExistIsReplaced(t *testing.T) {
	r := newRig(t)
	claim := "gpu"
	mark := func(pod *corev1.Pod) { labels.SetGroup(&pod.ObjectMeta, llama.Name, 2) }
	r.node("n1", 4)
	r.startWhole()
	r.create(r.pod("a", DefaultName, mark), r.pod("b", DefaultName, mark, func(pod *corev1.Pod) {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &claim}}
	}))
	r.waitMessage("a", "pod b: ResourceClaim gpu not found")
	r.delete("b")
	r.create(r.pod("c", DefaultName, mark))
	r.waitPlaced("a", "c")
}

// Controllers for Volcano create no pods before their group is admitted.
func TestVolcanoGroupsAreAdmittedBeforeTheirPods(t *testing.T) {
	gangCycle(t)
	i := slices.IndexFunc(dialects(), func(d conforming) bool { return d.dialect == gang.Volcano })
	for serving, want := range map[string]string{"volcano": "Inqueue", "kube-batch": ""} {
		g := team{newRig(t, serving), dialects()[i]}
		g.crd(g.resource, true)
		g.node("n1", 4)
		g.declare("g", 2)
		g.start()
		if want == "" {
			g.node("n2", 4)
			g.create(g.pod("single", DefaultName))
			g.waitPlaced("single") // it does work
			poll.Until(t, "the group is known", func() bool {
				return g.cache.MinCount(gang.Key{Dialect: gang.Volcano, Namespace: namespace, Name: "g"}) == 2
			})
			if phase := g.written("g"); phase != "" {
				t.Errorf("wrote %q to a group of another scheduler", phase)
			}
			continue
		}
		poll.Until(t, "the group is admitted", func() bool { return g.written("g") == want })
		g.waitPlaced(g.members("g", 2, 0, 2)...)
		poll.Until(t, "the group runs", func() bool { return g.written("g") == "Running" })
	}
}
