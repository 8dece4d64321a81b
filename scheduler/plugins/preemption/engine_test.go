package preemption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/storage/volume"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
)

func TestAGangTakesThePlacesOfSingles(t *testing.T) {
	r := start(t, "")
	r.Create(enginetest.Node("n1", 4), enginetest.Node("n2", 4))
	low := r.members("l", 4, 4, 0)
	r.WaitPlaced(low...)
	r.WaitPlaced(r.singles(4)...)
	r.WaitPlaced(r.members("a", 3, 3, 100)...)
	if got := r.evicted(); got != "s-1 s-2 s-3" {
		t.Errorf("evicted %s", got)
	}
	if n := r.Placed(low...); n != 4 {
		t.Errorf("%d of 4 members of the other gang are left", n)
	}
}

func TestNoPodIsEvictedForNothing(t *testing.T) {
	r := start(t, "")
	r.Create(enginetest.Node("n1", 4), enginetest.Node("n2", 4))
	r.WaitPlaced(r.singles(8)...)
	r.members("a", 9, 9, 200)
	r.waitMessage("a-0", "of the 9 members that its gang needs fit")
	r.quiet(time.Second)
}

// A gang that all preemption does not help is tried again when room comes free that is enough together with preemption, though it is not enough alone.
func TestRoomThatIsEnoughWithPreemption(t *testing.T) {
	r := start(t, "")
	r.Create(enginetest.Node("n1", 4), enginetest.Node("n2", 4))
	r.Create(enginetest.Pod("equal", "", enginetest.On("n1"), enginetest.Priority(100), enginetest.CPUs(2)))
	r.singles(1, enginetest.On("n1"), enginetest.CPUs(2))
	r.Create(enginetest.Pod("low", "", enginetest.On("n2"), enginetest.CPUs(4)))
	r.WaitPlaced("equal", "s-0", "low")
	a := r.members("a", 2, 2, 100, enginetest.CPUs(4))
	r.waitMessage("a-0", "of the 2 members that its gang needs fit")
	r.Delete("equal")
	r.WaitPlaced(a...)
	if got := r.evicted(); got != "equal low s-0" && got != "low s-0" {
		t.Errorf("evicted %s", got)
	}
}

// A gang that has its minimum preempts for its further members as for pods of their priority, and for no more than can have a place.
func TestMembersAboveTheMinimumPreempt(t *testing.T) {
	r := start(t, "")
	r.Create(enginetest.Node("n1", 6))
	r.Create(enginetest.Pod("high", "", enginetest.Priority(200)), enginetest.Pod("equal", "", enginetest.Priority(100)))
	r.WaitPlaced("high", "equal")
	r.WaitPlaced(r.singles(3)...)
	a := r.members("a", 5, 1, 100)
	r.Wait("four have places", func() bool { return r.Placed(a...) == 4 })
	waits := slices.DeleteFunc(a, func(name string) bool { return r.Placed(name) == 1 })
	r.waitMessage(waits[0], "its gang has its minimum, with 4 members placed, and there is no room for more")
	r.quiet(time.Second)
	if got := r.evicted(); got != "s-0 s-1 s-2" {
		t.Errorf("evicted %s", got)
	}
}

// All further members that wait have others evicted at once. What is freed is kept for each of them, until each has a place.
func TestRoomForFurtherMembersIsKept(t *testing.T) {
	r := start(t, "").slowly()
	r.Create(enginetest.Node("n1", 1))
	a := r.members("a", 4, 1, 100)
	r.Wait("one has its place", func() bool { return r.Placed(a...) == 1 })
	waiting := slices.DeleteFunc(slices.Clone(a), func(name string) bool { return r.Placed(name) == 1 })
	for _, name := range waiting {
		r.waitMessage(name, "there is no room for more")
	}
	singles := r.singles(3, enginetest.On("n2"))
	r.Create(enginetest.Node("n2", 3))
	r.Wait("all are evicted", func() bool { return r.evicted() == strings.Join(singles, " ") })
	r.Create(enginetest.Pod("rival", "", enginetest.Priority(100)))
	for i, name := range singles {
		r.leave(name)
		r.Wait("another has its place", func() bool { return r.Placed(a...) == 2+i })
		for _, name := range waiting {
			if r.Placed(name) == 0 {
				r.waitMessage(name, "preempts 3 pods")
			}
		}
	}
	if r.Placed("rival") != 0 {
		t.Error("another pod has the place of a member")
	}
}

// few is a filter that package placement does not know: a node has two pods of one priority at most.
type few struct{}

func (few) Name() string { return "Few" }

func (few) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	n := 0
	for _, p := range node.GetPods() {
		if corev1helpers.PodPriority(p.GetPod()) == 77 {
			n++
		}
	}
	if n >= 2 && corev1helpers.PodPriority(pod) == 77 {
		return fwk.NewStatus(fwk.Unschedulable, "two are enough")
	}
	return nil
}

// If the engine refuses as many further members as have a place by amounts, others are evicted for one.
func TestOneFurtherMember(t *testing.T) {
	r := startWith(t, "", []enginetest.Plugin{{Name: "Few", New: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return few{}, nil }}})
	r.Create(enginetest.Node("n1", 4))
	r.WaitPlaced(r.singles(3)...)
	a := r.members("a", 3, 1, 77)
	r.Wait("two have places", func() bool { return r.Placed(a...) == 2 })
	r.quiet(time.Second)
	if got := r.evicted(); got != "s-2" {
		t.Errorf("evicted %s", got)
	}
}

// A member is nominated before a victim goes, and not any more when nothing is freed for it.
func TestNominations(t *testing.T) {
	r := startHeld(t, func(*enginetest.Cluster) {}, "", nil).slowly()
	r.Preemptor.nominatedWithin = 20 * time.Second
	r.run()
	r.Create(enginetest.Node("n1", 2))
	r.WaitPlaced(r.singles(2)...)
	unseen := make(chan string, 4)
	r.Client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if len(action.(clienttesting.DeleteActionImpl).DeleteOptions.DryRun) > 0 {
			return false, nil, nil
		}
		for _, name := range []string{"a-0", "a-1"} {
			member, err := r.Client.Tracker().Get(podResource, enginetest.Namespace, name) // the client waits for its reactors
			if err != nil || member.(*corev1.Pod).Status.NominatedNodeName == "" {
				unseen <- action.(clienttesting.DeleteAction).GetName()
			}
		}
		return false, nil, nil
	})
	r.members("a", 2, 2, 100)
	r.Wait("two are evicted", func() bool { return r.evicted() == "s-0 s-1" })
	if len(unseen) > 0 {
		t.Errorf("%s went before the members were nominated", <-unseen)
	}
	r.Create(enginetest.Pod("high", "", enginetest.On("n1"), enginetest.Priority(200), enginetest.CPUs(2)))
	r.leave("s-0", "s-1")
	r.Wait("no member is nominated", func() bool { return r.nominated("a-0")+r.nominated("a-1") == "" })
}

// A gang loses a member while nodes are being freed for it, and is not tried any more. Its other member keeps no node to which its nomination is all that is left.
func TestNominationsOfAGangThatIsNotTried(t *testing.T) {
	r := start(t, "").slowly()
	r.Create(enginetest.Node("n1", 2))
	r.WaitPlaced(r.singles(2)...)
	r.members("a", 2, 2, 100)
	r.Wait("both are nominated", func() bool { return r.nominated("a-0") == "n1" && r.nominated("a-1") == "n1" })
	r.Wait("two are evicted", func() bool { return r.evicted() == "s-0 s-1" })
	r.leave("a-1")
	key := types.NamespacedName{Namespace: enginetest.Namespace, Name: "labels:a"}
	r.Preemptor.mu.Lock()
	reservation := r.reservations[key]
	r.Preemptor.mu.Unlock()
	r.Preemptor.end(reservation, endFailed) // as when its nodes are not used in time
	r.Create(enginetest.Pod("low", "", enginetest.CPUs(2)))
	r.leave("s-0", "s-1")
	r.WaitPlaced("low")
	r.Wait("the member is nominated no more", func() bool { return r.nominated("a-0") == "" })
}

// Many have to go, and the preemptor does while they are being evicted: the others stay.
func TestThePreemptorGoesWhileVictimsAreEvicted(t *testing.T) {
	r := start(t, `{"searchBudget":"10s"}`)
	var once sync.Once
	preemptor := enginetest.Pod("p", "", enginetest.Priority(100), enginetest.CPUs(40))
	r.Client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if len(action.(clienttesting.DeleteActionImpl).DeleteOptions.DryRun) > 0 {
			return false, nil, nil
		}
		once.Do(func() {
			if err := r.Client.Tracker().Delete(podResource, enginetest.Namespace, "p"); err != nil { // the client waits for its reactors
				t.Error(err)
			}
			r.Wait("the engine knows", func() bool { return r.engine.Pod(preemptor) == nil })
		})
		return false, nil, nil
	})
	r.Create(enginetest.Node("n1", 40))
	r.WaitPlaced(r.singles(40)...)
	r.Create(preemptor)
	r.Wait("some are evicted", func() bool { return r.evicted() != "" })
	r.Wait("the reservation ends", func() bool {
		r.Preemptor.mu.Lock()
		defer r.Preemptor.mu.Unlock()
		return len(r.reservations) == 0
	})
	r.settle(500 * time.Millisecond)
	if n := len(strings.Fields(r.evicted())); n > atOnce {
		t.Errorf("%d of 40 are evicted, want no more than begin at once", n)
	}
}

// A gang is nominated anew while an earlier nomination is being cleared: what is cleared is what was seen.
func TestANominationIsClearedAsItWasSeen(t *testing.T) {
	var mu sync.Mutex
	var cleared []string
	r := start(t, "")
	r.Client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		if !strings.Contains(string(patch.GetPatch()), `"nominatedNodeName":null`) {
			return false, nil, nil
		}
		mu.Lock()
		defer mu.Unlock()
		cleared = append(cleared, string(patch.GetPatch()))
		return len(cleared) == 1, nil, apierrors.NewConflict(podResource.GroupResource(), "a-0", nil)
	})
	r.Create(enginetest.Node("n1", 1), enginetest.Pod("other", ""))
	r.WaitPlaced("other") // the engine has begun, and taken over what it found
	pod := enginetest.Pod("a-0", "a", func(p *corev1.Pod) { p.ResourceVersion, p.Status.NominatedNodeName = "7", "n1" })
	r.Create(pod)
	r.Wait("the engine knows it", func() bool { return r.engine.Pod(pod) != nil })
	nominate := func() {
		r.Preemptor.mu.Lock()
		defer r.Preemptor.mu.Unlock()
		r.Preemptor.nominees[pod.UID] = nominee{pod: pod, node: "n1"}
	}
	nominate()
	seen := func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(cleared) }
	r.Wait("it is being cleared", func() bool { return len(seen()) > 0 })
	if got := seen()[0]; !strings.Contains(got, `"resourceVersion":"7"`) {
		t.Errorf("cleared of any version: %s", got)
	}
	r.Preemptor.clearNominations(t.Context())
	if n := len(seen()); n != 1 {
		t.Errorf("cleared %d times of one version", n)
	}
	changed := pod.DeepCopy()
	changed.ResourceVersion = "8"
	if err := r.Client.Tracker().Update(podResource, changed, enginetest.Namespace); err != nil {
		t.Fatal(err)
	}
	r.Wait("it is nominated no more", func() bool { return r.nominated("a-0") == "" })
}

// A policy keeps one of the victims. The others do not go in vain; where enough of them are left, these do.
func TestAPodThatMayNotBeDeleted(t *testing.T) {
	r := start(t, "")
	r.Client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		kept := action.(clienttesting.DeleteAction).GetName() == "s-1"
		return kept, nil, apierrors.NewForbidden(podResource.GroupResource(), "s-1", errors.New("it is protected"))
	})
	r.Create(enginetest.Node("n1", 3))
	r.WaitPlaced(r.singles(3)...)
	r.members("a", 3, 3, 100)
	r.Wait("it is found to be kept", func() bool {
		r.Preemptor.mu.Lock()
		defer r.Preemptor.mu.Unlock()
		return len(r.Preemptor.spared) == 1
	})
	if got := r.evicted(); got != "" {
		t.Errorf("%s went in vain", got)
	}
	r.WaitPlaced(r.members("b", 2, 2, 100)...)
	r.waitEvicted("s-0", "s-2")
}

// The members of a gang come with the nominations of a scheduler that is gone, for nodes of which one is, too. They are cleared, and the gang, or others,
// get the nodes that are there.
func TestNominationsOfTheOneBefore(t *testing.T) {
	on := func(nominated string, nodes ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.NominatedNodeName = nominated
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes},
				}}},
			}}}
		}
	}
	r := startAfter(t, func(c *enginetest.Cluster) {
		c.Create(enginetest.Node("n2", 1), enginetest.Node("n5", 1), enginetest.Node("n7", 1))
		c.Group("a", 2, 100)
		c.Create(enginetest.Pod("a-0", "a", enginetest.Priority(100), on("n1", "n1", "n2")), enginetest.Pod("a-1", "a", enginetest.Priority(100), on("n2", "n2", "n5")))
		c.Group("b", 2, 100)
		c.Create(enginetest.Pod("b-0", "b", enginetest.Priority(100), on("n7", "n7")), enginetest.Pod("b-1", "b", enginetest.Priority(100), on("n8", "n8")))
	}, "", nil)
	r.WaitPlaced("a-0", "a-1")
	r.Wait("the gang that can run nowhere is nominated no more", func() bool { return r.nominated("b-0")+r.nominated("b-1") == "" })
	r.Create(enginetest.Pod("other", "", enginetest.Priority(100)))
	r.WaitPlaced("other")
}

// A volume that members share is being made for a node. They have places on two nodes, and nobody has to go so that they all are on that one.
func TestNoPodIsEvictedForAVolumeThatIsBeingMade(t *testing.T) {
	r := start(t, "")
	class := "shared"
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: enginetest.Namespace, Name: "data", Annotations: map[string]string{volume.AnnSelectedNode: "n1"}},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}},
	}
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	_, err := r.Client.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "nfs.example.com", VolumeBindingMode: &wait}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Client.CoreV1().PersistentVolumeClaims(enginetest.Namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.Create(enginetest.Node("n1", 4))
	r.WaitPlaced(r.singles(3)...)
	r.Create(enginetest.Node("n2", 3), enginetest.Pod("wide", "", enginetest.CPUs(2)))
	r.WaitPlaced("wide") // n2 has been seen
	r.members("a", 2, 2, 100, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})
	r.waitMessage("a-0", "PersistentVolumeClaim data, which its members share, has no volume yet")
	r.quiet(time.Second)
	if got := r.evicted(); got != "" {
		t.Errorf("evicted %s", got)
	}
}

func TestAMemberThatItsGangCanDoWithoutGoesFirst(t *testing.T) {
	r := start(t, "")
	r.Create(enginetest.Node("n1", 4))
	r.WaitPlaced(r.members("l", 4, 2, 0)...)
	r.WaitPlaced(r.members("a", 2, 2, 100)...)
	if n := r.Placed("l-0", "l-1", "l-2", "l-3"); n != 2 {
		t.Errorf("%d of the other gang's members are left, want its minimum", n)
	}
}

// A pod on its own must not break a gang, either: another pod goes, or the gang
// as a whole.
func TestASinglePodDoesNotBreakAGang(t *testing.T) {
	r := start(t, "").slowly()
	r.Create(enginetest.Node("n1", 4))
	r.WaitPlaced(r.members("l", 3, 3, 0)...)
	r.WaitPlaced(r.singles(1, enginetest.Priority(50))...)
	r.Create(enginetest.Pod("p", "", enginetest.Priority(60)))
	r.waitMessage("p", "preempts gang ns/l (3 pods)") // the lowest priority goes first
	r.Wait("all of it is evicted", func() bool { return r.evicted() == "l-0 l-1 l-2" })
	r.leave("l-0", "l-1", "l-2")
	r.WaitPlaced("p")
	if got := r.evicted(); got != "l-0 l-1 l-2" {
		t.Errorf("evicted %s", got)
	}
	r.Create(enginetest.Pod("q", "", enginetest.Priority(60), enginetest.CPUs(3)))
	r.Wait("the other pod is evicted", func() bool { return r.evicted() == "l-0 l-1 l-2 s-0" })
	r.leave("s-0")
	r.WaitPlaced("q")
}

// The room is not for others while those who have to leave do, and once they
// have, and no other pod has to go for it.
func TestTheRoomIsKept(t *testing.T) {
	r := start(t, "").slowly()
	r.Create(enginetest.Node("n1", 4))
	r.WaitPlaced(r.singles(4)...)
	a := r.members("a", 2, 2, 100)
	r.Wait("two are evicted", func() bool { return r.evicted() == "s-2 s-3" })
	r.waitMessage("a-0", "preempts 2 pods of lower priority (ns/s-")
	r.Wait("all members are nominated for the node that is being freed", func() bool { // each by a write of its own
		return r.nominated("a-0") == "n1" && r.nominated("a-1") == "n1"
	})
	r.Create(enginetest.Pod("filler", "", never, enginetest.Priority(100)))
	r.waitMessage("filler", "Insufficient cpu")
	b := r.members("b", 1, 1, 90, never)
	r.leave("s-3")
	r.waitMessage("filler", "being cleared for gang ns/a")
	r.quiet(1500 * time.Millisecond)
	if n := r.Placed(append(append(a, b...), "filler")...); n != 0 {
		t.Errorf("%d pods took the room before all of it was free", n)
	}
	r.leave("s-2")
	r.WaitPlaced(a...)
	// What comes free now is for everybody.
	r.leave("s-0", "s-1")
	r.WaitPlaced("filler", "b-0")
}

// What is being freed for one gang is no room for the next, which has others evicted at once and does not wait for it.
func TestTwoGangsPreemptAtOnce(t *testing.T) {
	r := start(t, "").slowly()
	r.Create(enginetest.Node("n1", 4))
	r.WaitPlaced(r.singles(4)...)
	a := r.members("a", 2, 2, 100)
	r.Wait("two are evicted", func() bool { return len(strings.Fields(r.evicted())) == 2 })
	b := r.members("b", 2, 2, 100)
	r.waitMessage("b-0", "preempts 2 pods of lower priority (ns/s-")
	r.Wait("all are evicted", func() bool { return r.evicted() == "s-0 s-1 s-2 s-3" })
	r.leave("s-0", "s-1", "s-2", "s-3")
	r.WaitPlaced(append(a, b...)...)
}

// A gang needs another member before anybody has been evicted for the first two. All three victims have to go for it: that those of a reservation which has ended
// leave is not to be counted on.
func TestAReservationThatIsReplacedBeforeItsVictimsGo(t *testing.T) {
	r := startHeld(t, func(*enginetest.Cluster) {}, "", nil)
	r.Create(enginetest.Node("n1", 3))
	r.WaitPlaced(r.singles(3)...)
	a := r.members("a", 3, 2, 100)
	victims := func() int {
		r.Preemptor.mu.Lock()
		defer r.Preemptor.mu.Unlock()
		mine := r.reservations[types.NamespacedName{Namespace: enginetest.Namespace, Name: "labels:a"}]
		if mine == nil {
			return 0
		}
		return len(podsOf(mine.units))
	}
	r.Wait("two are to go", func() bool { return victims() == 2 })
	r.Group("a", 3, 100)
	r.Wait("three are to go", func() bool { return victims() == 3 })
	r.run()
	r.WaitPlaced(a...)
}

// A victim is replaced by another pod of its name before it is evicted. It is gone, and what is reserved is not given up for that.
func TestAVictimThatWasReplaced(t *testing.T) {
	r := start(t, "").slowly()
	r.Create(enginetest.Node("n1", 2))
	r.WaitPlaced(r.singles(2)...)
	r.Client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		if patch.GetName() != "s-0" || !strings.Contains(string(patch.GetPatch()), string(corev1.DisruptionTarget)) {
			return false, nil, nil
		}
		uid := field.Invalid(field.NewPath("metadata", "uid"), "s-0", "field is immutable")
		return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "s-0", field.ErrorList{uid})
	})
	r.members("a", 2, 2, 100)
	r.Wait("the other is evicted", func() bool { return r.evicted() == "s-1" })
	r.Wait("the room is waited for", func() bool {
		r.Preemptor.mu.Lock()
		defer r.Preemptor.mu.Unlock()
		mine := r.reservations[types.NamespacedName{Namespace: enginetest.Namespace, Name: "labels:a"}]
		return mine != nil && len(mine.victims) == 1
	})
}

// nominated returns the node that a pod is nominated for.
func (r *rig) nominated(name string) string {
	r.t.Helper()
	pod, err := r.Client.CoreV1().Pods("ns").Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return pod.Status.NominatedNodeName
}

func never(pod *corev1.Pod) {
	policy := corev1.PreemptNever
	pod.Spec.PreemptionPolicy = &policy
}

// A preemptor that goes gives its room back.
func TestRoomIsGivenBack(t *testing.T) {
	r := start(t, "").slowly()
	r.Create(enginetest.Node("n1", 2))
	r.WaitPlaced(r.singles(2)...)
	r.members("a", 2, 2, 100)
	r.Wait("two are evicted", func() bool { return r.evicted() == "s-0 s-1" })
	r.Create(enginetest.Pod("filler", "", enginetest.Priority(0)))
	r.leave("a-0", "a-1", "s-0", "s-1")
	r.WaitPlaced("filler")
}

// A pod that is terminating anyway makes room enough.
func TestThoseWhoLeaveAreWaitedFor(t *testing.T) {
	r := start(t, "").slowly()
	r.Create(enginetest.Node("n1", 2))
	r.WaitPlaced(r.singles(2)...)
	r.Delete("s-0")
	a := r.members("a", 1, 1, 100)
	r.waitMessage("a-0", "1 members that its gang needs")
	r.quiet(time.Second)
	r.leave("s-0")
	r.WaitPlaced(a...)
}

// One that leaves by itself may take as long as its user likes. Nobody is evicted for a part of the room, and somebody is where that is enough.
func TestALongGraceIsNotWaitedFor(t *testing.T) {
	r := start(t, "")
	r.Create(enginetest.Node("n1", 1), enginetest.Node("n2", 1))
	r.singles(1, enginetest.On("n1"), func(pod *corev1.Pod) {
		at := metav1.NewTime(time.Now().Add(24 * time.Hour))
		pod.Name, pod.UID, pod.DeletionTimestamp = "checkpoints", "uid-checkpoints", &at
	})
	r.singles(1, enginetest.On("n2"))
	both := r.members("both", 2, 2, 100)
	r.waitMessage(both[0], "members that its gang needs")
	r.quiet(time.Second)
	if got := r.evicted(); got != "" {
		t.Errorf("evicted %s for a gang that it does not help", got)
	}
	r.WaitPlaced(r.members("one", 1, 1, 100)...)
	if got := r.evicted(); got != "s-0" {
		t.Errorf("evicted %q", got)
	}
}

// A scheduler that starts finds pods that leave because one before it preempted
// them: their room is for who outranks them.
func TestRoomIsKeptAcrossARestart(t *testing.T) {
	r := start(t, "").slowly()
	r.Create(enginetest.Node("n1", 2))
	r.singles(2, enginetest.On("n1"), func(pod *corev1.Pod) {
		at := metav1.NewTime(time.Now().Add(30 * time.Second))
		pod.DeletionTimestamp = &at
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}
	})
	a := r.members("a", 2, 2, 100)
	r.waitMessage("a-0", "waits for pods that leave")
	r.Create(enginetest.Pod("filler", "", enginetest.Priority(50)))
	r.waitMessage("filler", "Insufficient cpu")
	r.leave("s-0")
	r.waitMessage("filler", "being cleared for gang ns/a")
	r.leave("s-1")
	r.WaitPlaced(a...)
	if got := r.evicted(); got != "" {
		t.Errorf("evicted %s", got)
	}
}

// picky is a filter that takes pods of one priority nowhere.
type picky struct{}

func (picky) Name() string { return "Picky" }

func (picky) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ fwk.NodeInfo) *fwk.Status {
	if corev1helpers.PodPriority(pod) == 77 {
		return fwk.NewStatus(fwk.Unschedulable, "not to my taste")
	}
	return nil
}

// What package placement does not know, the engine does: no pod is evicted for those that it
// would not place.
func TestNoVictimForAPodThatTheEngineRefuses(t *testing.T) {
	r := startWith(t, "", []enginetest.Plugin{{Name: "Picky", New: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return picky{}, nil }}})
	r.Create(enginetest.Node("n1", 2))
	r.WaitPlaced(r.singles(2)...)
	r.members("a", 2, 2, 77)
	r.Create(enginetest.Pod("p", "", enginetest.Priority(77)))
	r.waitMessage("a-0", "members that its gang needs fit")
	r.waitMessage("p", "preemption does not help")
	r.quiet(500 * time.Millisecond)
}

// shy is a filter that package placement does not know: pods of one priority go to no node with a pod that has a label.
type shy struct{}

func (shy) Name() string { return "Shy" }

func (shy) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	loud := slices.ContainsFunc(node.GetPods(), func(p fwk.PodInfo) bool { return p.GetPod().Labels["loud"] != "" })
	if loud && corev1helpers.PodPriority(pod) == 77 {
		return fwk.NewStatus(fwk.Unschedulable, "too loud")
	}
	return nil
}

// Where the engine refuses those who would be enough by amounts, it is the one that decides who has to go, and nobody else does.
func TestVictimsByTheEngine(t *testing.T) {
	for name, preemptor := range map[string]func(r *rig) []string{
		"a gang": func(r *rig) []string { return r.members("a", 2, 2, 77) },
		"a pod on its own": func(r *rig) []string {
			r.Create(enginetest.Pod("p", "", enginetest.Priority(77), enginetest.CPUs(2)))
			return []string{"p"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := startWith(t, "", []enginetest.Plugin{{Name: "Shy", New: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return shy{}, nil }}})
			r.Create(enginetest.Node("n1", 5), enginetest.Node("n2", 5))
			loud := func(p *corev1.Pod) { p.Labels = map[string]string{"loud": "yes"} }
			for _, node := range []string{"n1", "n2"} {
				priority := int32(60)
				if node == "n2" {
					priority = 50
				}
				r.Create(enginetest.Pod("loud-"+node, "", enginetest.On(node), enginetest.Priority(priority), loud))
				for i := range 4 {
					r.Create(enginetest.Pod(fmt.Sprintf("quiet-%s-%d", node, i), "", enginetest.On(node), started(i)))
				}
			}
			r.Create(enginetest.Pod("known", "", never)) // it is refused when the engine knows the others
			r.waitMessage("known", "Insufficient cpu")
			r.WaitPlaced(preemptor(r)...)
			r.quiet(500 * time.Millisecond)
			if got := r.evicted(); got != "loud-n2 quiet-n2-3" {
				t.Errorf("evicted %s", got)
			}
		})
	}
}

// Of all nodes where the engine would have a pod, it is the one where the least harm is done.
func TestTheLeastVictimByTheEngine(t *testing.T) {
	r := startWith(t, "", []enginetest.Plugin{{Name: "Shy", New: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return shy{}, nil }}})
	r.Create(enginetest.Node("n1", 1), enginetest.Node("n2", 3))
	loud := func(p *corev1.Pod) { p.Labels = map[string]string{"loud": "yes"} }
	r.Create(enginetest.Pod("loud-50", "", enginetest.On("n1"), enginetest.Priority(50), loud))
	r.Create(enginetest.Pod("quiet-60", "", enginetest.On("n2"), enginetest.Priority(60)), enginetest.Pod("loud-10", "", enginetest.On("n2"), enginetest.Priority(10), loud),
		enginetest.Pod("quiet-0", "", enginetest.On("n2")))
	r.Create(enginetest.Pod("known", "", never))
	r.waitMessage("known", "Insufficient cpu")
	r.Create(enginetest.Pod("p", "", enginetest.Priority(77)))
	r.WaitPlaced("p")
	if got := r.evicted(); got != "loud-10" {
		t.Errorf("evicted %s", got)
	}
}

// A pod that leaves elsewhere keeps no nodes for those whom the engine refuses on nodes with room.
func TestRoomThatTheEngineRefusesIsNotKept(t *testing.T) {
	r := startWith(t, "", []enginetest.Plugin{{Name: "Picky", New: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return picky{}, nil }}}).slowly()
	r.Create(enginetest.Node("n1", 1))
	r.singles(1, enginetest.On("n1"), func(pod *corev1.Pod) {
		at := metav1.NewTime(time.Now().Add(30 * time.Second))
		pod.DeletionTimestamp = &at
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}
	})
	r.Create(enginetest.Node("n2", 2))
	r.Create(enginetest.Pod("first", "")) // when it is placed, the engine knows both nodes
	r.WaitPlaced("first")
	r.Create(enginetest.Pod("p", "", enginetest.Priority(77)))
	r.waitMessage("p", "there is room without preemption")
	r.Create(enginetest.Pod("filler", ""))
	r.WaitPlaced("filler")
}

func TestWhoMayNotPreempt(t *testing.T) {
	for name, c := range map[string]struct {
		args   string
		change []func(*corev1.Pod)
		prio   int32
		policy bool // it is reported that its policy is why
	}{
		"by its policy": {"", []func(*corev1.Pod){never}, 100, true},
		"by its policy, and of the same priority": {"", []func(*corev1.Pod){never}, 0, false},
		"by configuration":                        {`{"enabled":false}`, nil, 100, false},
		"of the same priority":                    {"", nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, c.args)
			r.Create(enginetest.Node("n1", 2))
			r.WaitPlaced(r.singles(2)...)
			r.members("a", 2, 2, c.prio, c.change...)
			r.Create(enginetest.Pod("p", "", append(c.change, enginetest.Priority(c.prio))...))
			r.waitMessage("a-0", "members that its gang needs fit")
			r.waitMessage("p", "Insufficient cpu")
			r.quiet(500 * time.Millisecond)
			for _, name := range []string{"a-0", "p"} {
				if got := r.Condition(name); strings.Contains(got, "preemptionPolicy is Never") != c.policy {
					t.Errorf("%s: %s", name, got)
				}
			}
		})
	}
}

// Pods of another scheduler go like others, members of its gangs only together.
func TestPodsOfOtherSchedulers(t *testing.T) {
	theirs := func(pod *corev1.Pod) { pod.Spec.SchedulerName = "theirs" }
	member := func(pod *corev1.Pod) { pod.Labels = map[string]string{"foreign": "g"} }
	r := start(t, "")
	r.Create(enginetest.Node("n1", 4))
	for _, name := range []string{"f-0", "f-1", "f-2"} {
		r.Create(enginetest.Pod(name, "", theirs, member, enginetest.On("n1")))
	}
	r.Create(enginetest.Pod("single", "", theirs, enginetest.On("n1")))
	r.WaitPlaced(r.members("a", 1, 1, 100)...)
	if got := r.evicted(); got != "single" {
		t.Errorf("evicted %s", got)
	}
	r.WaitPlaced(r.members("b", 2, 2, 100)...)
	r.waitEvicted("f-0", "f-1", "f-2", "single")
}

// A gang in parts cannot be completed if no victim may go for it, and otherwise it can.
func TestAPartialGangWithoutVictims(t *testing.T) {
	for name, c := range map[string]struct {
		args     string
		priority int32
		change   []func(*corev1.Pod)
		short    bool
	}{
		"of an equal priority":         {short: true},
		"of a higher priority":         {priority: 100},
		"preemption is switched off":   {args: `{"enabled":false}`, priority: 100, short: true},
		"it is not allowed to preempt": {priority: 100, change: []func(*corev1.Pod){never}, short: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, c.args)
			r.Create(enginetest.Node("n1", 2), enginetest.Node("n2", 2))
			r.Create(enginetest.Pod("x-0", "", enginetest.On("n2")), enginetest.Pod("x-1", "", enginetest.On("n2")))
			r.Group("a", 4, c.priority)
			for i := range 4 {
				change := append([]func(*corev1.Pod){enginetest.Priority(c.priority)}, c.change...)
				if i < 2 {
					change = append(change, enginetest.On("n1"))
				}
				r.Create(enginetest.Pod(fmt.Sprintf("a-%d", i), "a", change...))
			}
			if !c.short {
				r.WaitPlaced("a-2", "a-3")
				return
			}
			group, _ := engine.GroupOf(enginetest.Pod("a-0", "a"))
			r.Wait("it falls short", func() bool {
				s, ok := r.parked.(*planner.Attempts).Shortfall(group)
				return ok && s.Placed == 2
			})
		})
	}
}

// Pods of a group that is no gang go one by one, or as a whole if the group declares that.
func TestAGroupThatIsEvictedAsAWhole(t *testing.T) {
	for _, c := range []struct {
		mode schedulingv1beta1.DisruptionMode
		want string
	}{
		{schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}}, "l-2"},
		{schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}, "l-0 l-1 l-2"},
	} {
		r := start(t, "").slowly()
		r.Create(enginetest.Node("n1", 3))
		names := r.members("l", 3, 1, 0)
		group, ok := r.Groups.Get("ns", "labels:l")
		if !ok {
			t.Fatal("the group is not known")
		}
		group = group.DeepCopy() // what is stored is shared
		group.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}
		group.Spec.DisruptionMode = &c.mode
		r.Groups.Set(group)
		r.WaitPlaced(names...)
		r.Create(enginetest.Pod("p", "", enginetest.Priority(60)))
		r.Wait("who has to is evicted", func() bool { return len(r.evicted()) >= len(c.want) })
		r.quiet(500 * time.Millisecond)
		if got := strings.Fields(r.evicted()); len(got) != len(strings.Fields(c.want)) {
			t.Errorf("evicted %v, want as many as %s", got, c.want)
		}
	}
}
