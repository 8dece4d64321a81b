package claims

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
)

var (
	noon  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	gangA = types.NamespacedName{Namespace: enginetest.Namespace, Name: "labels:a"}
	gangB = types.NamespacedName{Namespace: enginetest.Namespace, Name: "labels:b"}
)

// book is a ledger with an engine of which only what it calls is there: two
// nodes of four CPUs, with pods.
type book struct {
	*Ledger
	t        *testing.T
	now      *clocktesting.FakePassiveClock
	pods     []*corev1.Pod
	lacking  int           // members of the gang
	placed   []*corev1.Pod // of the gang
	gone     bool
	change   func(*corev1.Pod) // what became of the pods
	woken    []string
	released int
}

func newBook(t *testing.T, pods ...*corev1.Pod) *book {
	b := &book{t: t, pods: pods}
	b.now = clocktesting.NewFakePassiveClock(noon)
	b.Ledger = NewLedger(b, b, b.now, audience.Hidden)
	b.Register(metrics.NewKubeRegistry().MustRegister)
	return b
}

func (b *book) Activate(pods map[string]*corev1.Pod) {
	b.woken = append(b.woken, slices.Sorted(maps.Keys(pods))...)
}

func (b *book) Pod(pod *corev1.Pod) *corev1.Pod {
	if b.gone {
		return nil
	}
	if b.change != nil {
		pod = pod.DeepCopy()
		b.change(pod)
	}
	return pod
}

func (b *book) Lacking(types.NamespacedName) int { return b.lacking }

func (b *book) Scheduled(types.NamespacedName) []*corev1.Pod { return b.placed }

func (b *book) Released() { b.released++ }

func (b *book) nodes() fwk.NodeInfoLister {
	return internalcache.NewSnapshot(b.pods, []*corev1.Node{enginetest.Node("n1", 4), enginetest.Node("n2", 4)}).NodeInfos()
}

// filter tries a pod on a node, meanwhile is after PreFilter.
func (b *book) filter(pod *corev1.Pod, node string, meanwhile func()) *fwk.Status {
	b.t.Helper()
	p := &Plugin{ledger: b.Ledger}
	state := framework.NewCycleState()
	if _, status := p.PreFilter(b.t.Context(), state, pod, nil); !status.IsSuccess() && !status.IsSkip() {
		b.t.Fatal(status)
	}
	if meanwhile != nil {
		meanwhile()
	}
	info, err := b.nodes().Get(node)
	if err != nil {
		b.t.Fatal(err)
	}
	return p.Filter(b.t.Context(), state, pod, info)
}

// claim is for a member of a gang that requests so many CPUs of n1.
func claim(gang types.NamespacedName, name string, cpus int) Claim {
	return Claim{For: gang, Node: "n1", Pod: enginetest.Pod(name, "a", enginetest.CPUs(int64(cpus))), Why: audience.Plain("kept for " + name)}
}

func TestWhomAClaimBinds(t *testing.T) {
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		kind    Kind
		partial bool
		want    bool
	}{
		"a pod on its own":  {enginetest.Pod("s", ""), Replacement, false, true},
		"another gang":      {enginetest.Pod("b-0", "b"), Replacement, false, true},
		"its own gang":      {enginetest.Pod("a-9", "a"), Replacement, false, false},
		"a higher priority": {enginetest.Pod("s", "", enginetest.Priority(1)), Replacement, false, false},
		"a gang that lost a member, a reservation": {enginetest.Pod("b-0", "b"), Reservation, true, false},
		"the same, room being cleared":             {enginetest.Pod("b-0", "b"), Preemption, true, true},
		"the same, a replacement":                  {enginetest.Pod("b-0", "b"), Replacement, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			if c.partial {
				b.lacking = 1
				b.Whole(gangB, []*corev1.Pod{enginetest.Pod("b-lost", "b")})
			}
			b.Replace(c.kind, []Claim{claim(gangA, "a-0", 4)})
			status := b.filter(c.pod, "n1", nil)
			if got := !status.IsSuccess(); got != c.want {
				t.Errorf("bound %v, want %v", got, c.want)
			}
			if c.want && status.Message() != "kept for a-0" {
				t.Errorf("it says %q", status.Message())
			}
			members := []*corev1.Pod{c.pod}
			if got := len(b.Withheld(b.nodes(), ConsumerOf(c.pod), members, nil)) > 0; got != c.want {
				t.Errorf("the planner gets another answer than the filter")
			}
			if !b.filter(c.pod, "n2", nil).IsSuccess() {
				t.Error("a node without claims is refused")
			}
		})
	}
}

// The claims of one kind are charged together; those of two kinds may be of one
// consumer.
func TestWhatIsChargedTogether(t *testing.T) {
	b := newBook(t)
	b.Replace(Replacement, []Claim{claim(gangA, "a-0", 1), claim(gangB, "b-0", 1)})
	b.Replace(Reservation, []Claim{claim(gangA, "a-1", 2)})
	two, three := enginetest.Pod("s", "", enginetest.CPUs(2)), enginetest.Pod("s", "", enginetest.CPUs(3))
	if status := b.filter(two, "n1", nil); !status.IsSuccess() {
		t.Errorf("two CPUs are free apart from the claims of each kind: %v", status)
	}
	if got := b.filter(three, "n1", nil).Message(); got != "kept for a-0, kept for b-0" {
		t.Errorf("it says %q", got)
	}
	if got, err := testutil.GetCounterMetricValue(b.rejected.WithLabelValues(string(Replacement))); err != nil || got != 1 {
		t.Errorf("%v rejections are counted: %v", got, err)
	}
}

func TestRoomThatIsNotFreeYet(t *testing.T) {
	leaves := enginetest.Pod("leaves", "", enginetest.On("n1"), enginetest.CPUs(2))
	b := newBook(t, leaves)
	c := claim(gangA, "a-0", 3)
	c.Leaving = map[types.UID]bool{leaves.UID: true}
	b.Replace(Preemption, []Claim{c})
	withheld := b.Withheld(b.nodes(), gangB, []*corev1.Pod{enginetest.Pod("b-0", "b")}, nil)
	if len(withheld) != 1 || withheld[0].Pod.Spec.Containers[0].Resources.Requests.Cpu().Value() != 1 {
		t.Errorf("withheld %+v, want the CPU that is claimed beyond those that leave", withheld)
	}
	withheld = b.Withheld(b.nodes(), gangB, []*corev1.Pod{enginetest.Pod("b-0", "b")}, c.Leaving)
	if len(withheld) != 1 || withheld[0].Pod.Spec.Containers[0].Resources.Requests.Cpu().Value() != 3 {
		t.Errorf("withheld %+v, want all that is claimed as if those had left that leave", withheld)
	}
	if !b.filter(enginetest.Pod("s", ""), "n1", nil).IsSuccess() {
		t.Error("a CPU is free apart from the claim")
	}
	if b.filter(enginetest.Pod("s", "", enginetest.CPUs(2)), "n1", nil).IsSuccess() {
		t.Error("a CPU that is claimed is taken")
	}
}

func TestHostPortsAreClaimed(t *testing.T) {
	port := func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
	}
	b := newBook(t)
	c := claim(gangA, "a-0", 1)
	port(c.Pod)
	b.Replace(Replacement, []Claim{c})
	if b.filter(enginetest.Pod("s", "", port), "n1", nil).IsSuccess() || !b.filter(enginetest.Pod("s", ""), "n1", nil).IsSuccess() {
		t.Error("the host port is not claimed, or more than that is")
	}
}

// Devices may stand behind a resource that no node offers: a pod that requests one is kept off room that is claimed as any other.
func TestAResourceBehindWhichDevicesStand(t *testing.T) {
	b := newBook(t)
	b.Replace(Reservation, []Claim{claim(gangA, "a-0", 4)})
	pod := enginetest.Pod("s", "", enginetest.CPUs(1), func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests["deviceclass.resource.kubernetes.io/gpu"] = resource.MustParse("1")
	})
	if got := b.filter(pod, "n1", nil).Message(); got != "kept for a-0" {
		t.Errorf("the message is %q", got)
	}
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("5")
	if status := b.filter(pod, "n1", nil); !status.IsSuccess() {
		t.Errorf("a node without room for the pod is refused for the claim: %v", status)
	}
}

// Who was refused is tried again when one of the claims ends that kept it waiting.
func TestTheEndOfAClaimWakes(t *testing.T) {
	b := newBook(t)
	all := []Claim{claim(gangA, "a-0", 4), claim(gangA, "a-1", 4)}
	b.Replace(Replacement, slices.Clone(all))
	refuse := func(name string) { b.filter(enginetest.Pod(name, "", enginetest.CPUs(2)), "n1", nil) }
	expect := func(what string, released int, woken ...string) {
		t.Helper()
		b.Wake()
		if b.released != released || strings.Join(b.woken, " ") != strings.Join(woken, " ") {
			t.Errorf("%s: released %d times, woken %v; want %d, %v", what, b.released, b.woken, released, woken)
		}
		b.woken = nil
	}
	refuse("s")
	b.Replace(Replacement, slices.Clone(all))
	expect("nothing has changed", 0)
	b.Withdraw(Replacement, "another")
	expect("nothing is withdrawn", 0)
	b.Withdraw(Replacement, all[0].Pod.UID)
	expect("one is withdrawn", 1, "ns/s")
	refuse("s")
	b.ReplaceFor(Replacement, gangB, nil)
	expect("the claims of another gang end", 1)
	b.Retry(Replacement, gangA)
	expect("the claims may end in the next cycle", 2, "ns/s")
	refuse("s")
	refuse("t")
	b.ReplaceFor(Replacement, gangA, nil)
	expect("all end", 3, "ns/s", "ns/t")
	if b.any() || len(b.waiting) != 0 {
		t.Errorf("%v is left", b.waiting)
	}
	b.Replace(Replacement, slices.Clone(all))
	refuse("s")
	b.gone = true
	b.Prune()
	b.Replace(Replacement, nil)
	expect("who waited is gone", 4)
}

// A claim that ends between PreFilter and Filter refuses no pod, which would wait
// for what has happened.
func TestAClaimThatEndsMeanwhile(t *testing.T) {
	b := newBook(t)
	b.Replace(Preemption, []Claim{claim(gangA, "a-0", 4)})
	if status := b.filter(enginetest.Pod("s", ""), "n1", func() { b.Replace(Preemption, nil) }); !status.IsSuccess() {
		t.Errorf("refused: %v", status)
	}
}

func TestWhatTheConsumerHas(t *testing.T) {
	b := newBook(t)
	c := claim(gangA, "a-0", 1)
	c.Progress, c.Suspended = "preempts 1 pod", map[gang.Identity]bool{{Namespace: "ns", UID: "job"}: true}
	d := claim(gangA, "a-1", 1)
	d.Node = "n2"
	b.Replace(Preemption, []Claim{c, d})
	b.Replace(Reservation, []Claim{claim(gangA, "a-0", 1)})
	if got := b.Nodes(gangA); !slices.Equal(got, []string{"n1", "n2"}) {
		t.Errorf("nodes %v", got)
	}
	if b.Progress(gangA) != "preempts 1 pod" || b.Progress(gangB) != "" || !b.Suspends(gang.Identity{Namespace: "ns", UID: "job"}) || b.Suspends(gang.Identity{Namespace: "ns", UID: "other"}) || b.Suspends(gang.Identity{Namespace: "evil", UID: "job"}) {
		t.Error("progress or jobs are wrong")
	}
	if len(b.For(gangA)) != 3 || len(b.List(Reservation)) != 1 || len(b.Against(Preemption, gangB, enginetest.Pod("b-0", "b"))) != 2 {
		t.Error("claims are missing")
	}
}

func TestConsumers(t *testing.T) {
	for want, pod := range map[string]*corev1.Pod{"gang ns/a": enginetest.Pod("a-0", "a"), "pod ns/s": enginetest.Pod("s", "")} {
		consumer := ConsumerOf(pod)
		if got := Describe(consumer); got != want || IsSingle(consumer) != strings.HasPrefix(want, "pod") {
			t.Errorf("%s is described as %q", want, got)
		}
	}
}

// A pod that is refused in another namespace does not get the name of the claim's consumer.
func TestAClaimOfAnotherNamespaceIsNotNamed(t *testing.T) {
	owner := types.NamespacedName{Namespace: "secret", Name: "labels:llama"}
	who := ThingOf(owner, 3, enginetest.Pod("llama-0", "", enginetest.CPUs(4)))
	why := audience.Write(owner.Namespace, func(r audience.Reader) string { return "reserved for " + r.Title(who) })
	stranger, own := enginetest.Pod("s", ""), enginetest.Pod("web", "")
	own.Namespace = "secret"
	for name, tt := range map[string]struct {
		names audience.Policy
		pod   *corev1.Pod
		want  string
	}{
		"a stranger":                    {audience.Hidden, stranger, "reserved for a gang of another namespace (4 cpu, priority 3)"},
		"of its namespace":              {audience.Hidden, own, "reserved for gang secret/llama"},
		"a stranger, names are allowed": {audience.Named, stranger, "reserved for gang secret/llama"},
	} {
		b := newBook(t)
		b.names = tt.names
		b.Replace(Reservation, []Claim{{For: owner, Who: who, Node: "n1", Priority: 3, Why: why, Pod: enginetest.Pod("llama-0", "", enginetest.CPUs(4))}})
		if got := b.filter(tt.pod, "n1", nil).Message(); got != tt.want {
			t.Errorf("%s reads %q, want %q", name, got, tt.want)
		}
	}
	if got := ThingOf(types.NamespacedName{Namespace: "secret", Name: "pod:web"}, 0); (audience.Reader{}).Title(got) != "pod secret/web" {
		t.Errorf("a pod on its own is %s", (audience.Reader{}).Title(got))
	}
}

// What the filter finds for a member, it finds for those that are alike, and for no others, as long as the claims are the same.
func TestMembersThatAreAlikeAreBoundAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	b := newBook(t)
	kinds := []Kind{Replacement, Reservation, Preemption}
	consumers := []types.NamespacedName{gangA, gangB}
	for step := range 2000 {
		switch r.IntN(8) {
		case 0:
			b.Replace(kinds[r.IntN(3)], nil)
		case 1, 2:
			c := claim(consumers[r.IntN(2)], fmt.Sprint("a-", r.IntN(3)), 1+r.IntN(2))
			c.Node, c.Priority = fmt.Sprint("n", r.IntN(3)), int32(r.IntN(3))
			if r.IntN(2) == 0 {
				c.Start = noon.Add(time.Hour)
			}
			b.ReplaceFor(kinds[r.IntN(3)], c.For, []Claim{c})
		}
		pod := enginetest.Pod("x", []string{"a", "b", ""}[r.IntN(3)], enginetest.Priority(int32(r.IntN(3))), func(p *corev1.Pod) {
			if r.IntN(3) == 0 {
				p.Spec.ActiveDeadlineSeconds = ptr.To(int64(60 << (6 * r.IntN(2))))
			}
		})
		var lost Amounts
		if r.IntN(3) == 0 {
			lost = AmountsOf(pod)
		}
		consumer := ConsumerOf(pod)
		want := bound{}
		for _, e := range b.binding(consumer, lost, pod) {
			want[e.Node] = append(want[e.Node], e)
		}
		if got := b.bindingByNode(consumer, lost, pod); !maps.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("step %d: the filter finds %v, want %v", step, got, want)
		}
		for _, consumer := range consumers {
			own := 0
			for _, kind := range kinds {
				for _, c := range b.List(kind) {
					if c.For == consumer {
						own++
					}
				}
			}
			if got := len(b.For(consumer)); got != own {
				t.Fatalf("step %d: %s has %d claims, want %d", step, consumer, got, own)
			}
		}
	}
}
