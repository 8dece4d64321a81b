package planner

import (
	"fmt"
	"testing"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	enginemetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// Of equal gangs that wait one is searched, and each has its reason. Room for one of them starts one of them.
func TestEqualGangsShareAProof(t *testing.T) {
	r := newRig(t)
	for i := range 5 { // the engine lists them in any order
		r.must(r.api.Create(resourceapi.SchemeGroupVersion.WithResource("deviceclasses"), &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("class", i)}}, ""))
	}
	r.node("n1", "nvidia.com/gpu", "2")
	create := func(name string, minimum int32, gpus string) {
		r.gang(name, minimum)
		r.create(member(name, 0, "nvidia.com/gpu", gpus), member(name, 1, "nvidia.com/gpu", gpus))
	}
	create("a0", 2, "2")
	first := r.parked("a0")
	if first.Finding.Code != answer.NodesBusy && first.Finding.Code != answer.TooBig {
		t.Fatalf("reason %+v", first)
	}
	before := r.results(resultImpossible)
	for i := 1; i < 10; i++ {
		create(fmt.Sprint("a", i), 2, "2")
		if reason := r.parked(fmt.Sprint("a", i)); reason.Text() != first.Text() {
			t.Errorf("a%d: %s, and a0: %s", i, reason.Text(), first.Text())
		}
	}
	if n := r.results(resultImpossible) - before; n != 0 {
		t.Errorf("%d of 9 equal gangs were searched", n)
	}
	create("b", 2, "3") // another request
	r.parked("b")
	if n := r.results(resultImpossible) - before; n != 1 {
		t.Errorf("%d searches for another gang", n)
	}
	r.node("n2", "nvidia.com/gpu", "2")
	poll.Until(r, "one of the gangs has places", func() bool { return len(r.places()) == 2 })
	r.node("n3", "nvidia.com/gpu", "4")
	poll.Until(r, "another one has, too", func() bool { return len(r.places()) == 4 })
}

// named is a profile's handle.
type named struct {
	fwk.Handle
	profile string
}

func (n named) ProfileName() string { return n.profile }

// claimOn is a claim of another gang on some CPUs of a node.
func claimOn(node, amount string) claims.Claim {
	return claims.Claim{
		Kind: claims.Reservation, Node: node, Pod: member("other", 0, "cpu", amount), For: types.NamespacedName{Namespace: "default", Name: "other"},
		Who: audience.New("gang", "default", "other"),
	}
}

// What a proof may depend on tells gangs apart, and nothing else does.
func TestWhichGangsAreEqual(t *testing.T) {
	type searched struct {
		profile, namespace string
		minimum            int32
		topology           gang.Topology
		members            []*corev1.Pod
		bound              []types.UID
		claims             []claims.Claim
	}
	with := func(change ...func(*searched)) searched {
		c := searched{profile: ours, namespace: "default", minimum: 2, members: []*corev1.Pod{member("g", 0, "cpu", "1"), member("g", 1, "cpu", "1"), member("g", 2, "cpu", "2")}}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	keyOf := func(c searched) (key proofKey, shared bool) {
		roles, err := rolesOf(c.members, c.topology, &placement.AntiAffinity{}, nil, placement.NewCluster(placement.Objects{}).OwnVolume)
		if err != nil {
			t.Fatal(err)
		}
		q := &query{plugin: &Plugin{handle: named{profile: c.profile}}, cycle: &cycle{group: types.NamespacedName{Namespace: c.namespace, Name: "g"}}, members: roles}
		q.gang = placement.Gang{Roles: roles.roles, MinMember: c.minimum, Topology: c.topology, Bound: c.bound}
		q.claims = c.claims
		q.planner = newFixture().Planner
		return q.proofKey(), q.sharesProof()
	}
	all := func(f func(*corev1.Pod)) func(*searched) {
		return func(c *searched) {
			for _, m := range c.members {
				f(m)
			}
		}
	}
	want, shared := keyOf(with())
	if !shared {
		t.Fatal("a gang shares no proof")
	}
	for name, same := range map[string]func(*searched){
		"another gang": func(c *searched) {
			c.members = []*corev1.Pod{member("h", 0, "cpu", "1"), member("h", 1, "cpu", "1"), member("h", 2, "cpu", "2")}
		},
		"numbers in labels": func(c *searched) {
			for i, m := range c.members {
				m.Labels[kubeflowv1.ReplicaIndexLabel] = fmt.Sprint(i)
			}
		},
		"age": all(func(m *corev1.Pod) { m.CreationTimestamp.Time = time.Unix(7, 0) }),
	} {
		if got, shared := keyOf(with(same)); got != want || !shared {
			t.Errorf("%s makes another gang of it", name)
		}
	}
	for name, other := range map[string]func(*searched){
		"profile":      func(c *searched) { c.profile = "other" },
		"namespace":    func(c *searched) { c.namespace = "other" },
		"minimum":      func(c *searched) { c.minimum = 3 },
		"one more":     func(c *searched) { c.members = append(c.members, member("g", 3, "cpu", "1")) },
		"other counts": func(c *searched) { c.members[1] = member("g", 1, "cpu", "2") },
		"topology":     func(c *searched) { c.topology.Required = "rack" },
		"a part":       func(c *searched) { c.topology.Parts = []gang.PartRule{{Required: "rack"}} },
		"request":      func(c *searched) { c.members[2] = member("g", 2, "cpu", "3") },
		"selector":     all(func(m *corev1.Pod) { m.Spec.NodeSelector = map[string]string{"a": "b"} }),
		"toleration":   all(func(m *corev1.Pod) { m.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }),
		"priority":     all(func(m *corev1.Pod) { m.Spec.Priority = ptr.To(int32(7)) }),
		"claim":        func(c *searched) { c.claims = []claims.Claim{claimOn("n1", "1")} },
		"role":         all(func(m *corev1.Pod) { m.Labels[kubeflowv1.ReplicaTypeLabel] = "worker" }),
	} {
		if got, _ := keyOf(with(other)); got == want {
			t.Errorf("with another %s it is the same gang", name)
		}
	}
	beside, shared := keyOf(with(func(c *searched) { c.claims = []claims.Claim{claimOn("n1", "1")} }))
	if again, _ := keyOf(with(func(c *searched) { c.claims = []claims.Claim{claimOn("n1", "1")} })); again != beside || !shared {
		t.Error("gangs from which the same is kept share no proof")
	}
	for name, c := range map[string]func(*claims.Claim){
		"node":     func(c *claims.Claim) { c.Node = "n2" },
		"pod":      func(c *claims.Claim) { c.Pod = member("other", 1, "cpu", "1") },
		"label":    func(c *claims.Claim) { c.Pod.Labels["role"] = "chief" },
		"rest":     func(c *claims.Claim) { c.Pod.UID = "" },
		"kind":     func(c *claims.Claim) { c.Kind = claims.Replacement },
		"consumer": func(c *claims.Claim) { c.For.Name = "c" },
		"start":    func(c *claims.Claim) { c.Start = time.Unix(7, 0) },
		"end":      func(c *claims.Claim) { c.Until = time.Unix(7, 0) },
	} {
		other := claimOn("n1", "1")
		c(&other)
		if got, _ := keyOf(with(func(c *searched) { c.claims = []claims.Claim{other} })); got == beside {
			t.Errorf("beside a claim with another %s it is the same gang", name)
		}
	}
	left := func(amount string) proofKey {
		c := claimOn("n1", amount)
		c.Pod.UID = ""
		key, _ := keyOf(with(func(s *searched) { s.claims = []claims.Claim{c} }))
		return key
	}
	if left("1") != left("1") || left("1") == left("2") {
		t.Error("what is left of a claim is not told by its amounts")
	}
	for name, alone := range map[string]func(*searched){
		"has members with nodes": func(c *searched) { c.bound = []types.UID{"x"} },
		"has volumes": all(func(m *corev1.Pod) {
			m.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		}),
	} {
		if _, shared := keyOf(with(alone)); shared {
			t.Errorf("one that %s shares a proof", name)
		}
	}
}

// A proof holds in its state only, what is done with it changes no other's, and there are not many.
func TestProofsAreKept(t *testing.T) {
	x := placement.NewIndex()
	update := func(nodes ...fwk.NodeInfo) placement.State { return x.Update(nodes, &placement.Objects{}).State() }
	n := framework.NewNodeInfo()
	n.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	a := update()
	b := update(n)
	key := func(i int) proofKey { return proofKey{byte(i), byte(i >> 8)} }
	lacking := func() *verdict {
		return &verdict{proven: true, lacks: map[corev1.ResourceName]int64{gpus: 3}, wants: &wants{places: 2}, reason: &reasons.Reason{Nodes: 5}}
	}
	var s sharedProofs
	s.keep(key(0), a, lacking())
	if s.of(key(0), b) != nil || s.of(key(1), a) != nil {
		t.Error("another cluster's, or another gang's")
	}
	v := s.of(key(0), a)
	v.lacks[gpus], v.wants.places, v.reason.Nodes = 0, 0, 0
	if again := s.of(key(0), a); !again.ofEqual || again.lacks[gpus] != 3 || again.wants.places != 2 || again.reason.Nodes != 5 {
		t.Errorf("changed: %+v", again)
	}
	for i := range 3 * maxSharedProofs {
		s.keep(key(i), a, lacking())
		if s.of(key(i), a) == nil || len(s.verdicts) > maxSharedProofs {
			t.Fatalf("after %d: %d are kept", i, len(s.verdicts))
		}
	}
	if s.keep(key(0), b, lacking()); len(s.verdicts) != 1 || s.of(key(0), b) == nil {
		t.Error("those of another cluster are kept")
	}
}

// enforcing is the handle of a profile with all filters.
type enforcing struct{ named }

func (enforcing) ListPlugins() *schedulerconfig.Plugins {
	p := &schedulerconfig.Plugins{}
	for _, name := range provenFilters {
		p.Filter.Enabled = append(p.Filter.Enabled, schedulerconfig.Plugin{Name: name})
	}
	return p
}

// What an equal gang proved is what a search for the gang itself would find, whatever the cluster and the gang.
func TestASharedProofIsItsOwn(t *testing.T) {
	enginemetrics.Register()
	proven, shared := 0, 0
	for seed := range uint64(2000) {
		s := newScene(t, seed)
		s.profiles = []schedulerconfig.KubeSchedulerProfile{{SchedulerName: ours}}
		snapshot := internalcache.NewEmptySnapshot()
		s.must(s.cache.UpdateSnapshot(klog.Background(), snapshot))
		nodes, err := snapshot.NodeInfos().List()
		s.must(err)
		like := s.gang()
		ask := func(name string) *verdict {
			var pods []*corev1.Pod
			for i, role := range like.members.roles {
				for k := range role.Count {
					p := role.Pod.DeepCopy()
					p.Name, p.UID = fmt.Sprint(name, i, k), types.UID(fmt.Sprint(name, i, k))
					pods = append(pods, p)
				}
			}
			q := &query{
				planner: s.Planner, plugin: &Plugin{planner: s.Planner, handle: enforcing{named{profile: ours}}}, nodes: nodes,
				cycle: &cycle{group: types.NamespacedName{Namespace: "default", Name: name}, args: DefaultArgs(), gang: &framework.QueuedPodGroupInfo{}},
			}
			q.cycle.gang.PodGroupInfo = &framework.PodGroupInfo{PodGroup: &schedulingv1beta1.PodGroup{}}
			q.cycle.gang.PodGroup.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: max(1, like.gang.MinMember)}
			q.members, err = rolesOf(pods, like.gang.Topology, s.Planner.antiAffinity(nodes), nil, placement.NewCluster(placement.Objects{}).OwnVolume)
			s.must(err)
			q.gang = placement.Gang{Roles: q.members.roles, MinMember: max(1, like.gang.MinMember), Topology: like.gang.Topology}
			q.free = s.Planner.cluster(nodes, s.classesOnly)
			q.kept, q.opts = q.free, placement.Options{Budget: time.Minute, Pack: true}
			if seed%2 == 0 {
				q.claims = []claims.Claim{claimOn(nodes[int(seed/2)%len(nodes)].Node().Name, "1")}
				q.kept = q.free.With(claims.PlacedPods(q.claims)...)
			}
			if placement.Place(t.Context(), q.kept, q.gang, q.opts).Fits() {
				return nil
			}
			return q.answer(t.Context())
		}
		if first := ask("a"); first == nil || !first.proven {
			continue
		}
		proven++
		got := ask("b")
		s.proofs = sharedProofs{}
		want := ask("b")
		if got.ofEqual {
			shared++
		}
		if text, own := fmt.Sprintf("%+v %v", got.reason, got.lacks), fmt.Sprintf("%+v %v", want.reason, want.lacks); text != own {
			t.Fatalf("seed %d: shared\n%s\nits own\n%s", seed, text, own)
		}
		if a, b := got.wants, want.wants; (a == nil) != (b == nil) || a != nil && (a.places != b.places || a.any != b.any || len(a.roles) != len(b.roles)) {
			t.Fatalf("seed %d: wants %+v, its own %+v", seed, a, b)
		}
	}
	if t.Logf("%d gangs are proven to have no placement", proven); proven < 500 || shared != proven {
		t.Errorf("%d of %d proofs were shared", shared, proven)
	}
}
