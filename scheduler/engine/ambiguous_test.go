package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
	"github.com/gangctl/gangctl/pkg/gang/dialect/pdb"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// ownedPod is a pod that only a budget makes a member of a gang.
func ownedPod(uid, scheduler string, version int) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "research", Name: uid, UID: types.UID(uid), ResourceVersion: fmt.Sprint(version),
			OwnerReferences: []metav1.OwnerReference{{UID: "job", Controller: &yes}},
		},
		Spec: corev1.PodSpec{SchedulerName: scheduler},
	}
}

func budgetOf(owner types.UID, min int) *policyv1.PodDisruptionBudget {
	yes, number := true, intstr.FromInt(min)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "budget", UID: "budget", OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: &yes}}},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &number},
	}
}

// setBudget and deleteBudget notify the gang cache.
func (s *shown) setBudget(budget *policyv1.PodDisruptionBudget) {
	if d, ok := pdb.Declare(budget); ok {
		s.Apply(func() gangcache.Change {
			return s.gangs.SetBudget(gangcache.Object{Declaration: d, GroupKind: d.Kind.GroupKind()})
		})
	}
}

func (s *shown) deleteBudget(budget *policyv1.PodDisruptionBudget) {
	key := gang.Key{Dialect: gang.PDB, Namespace: budget.Namespace, Name: budget.Name}
	kind := schema.GroupKind{Group: policyv1.GroupName, Kind: "PodDisruptionBudget"}
	s.Apply(func() gangcache.Change { return s.gangs.DeleteBudget(key, kind) })
}

// eventually polls until done.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// A pod is seen before the budget that makes it a member of a gang.
func TestABudgetThatIsLate(t *testing.T) {
	s := newShown(t, time.Hour)
	first, second := ownedPod("1", kubebatch.SchedulerName, 1), ownedPod("2", kubebatch.SchedulerName, 2)
	s.OnAdd(first, false)
	s.OnAdd(second, false)
	s.want(t, "their gang is not known")
	changed := ownedPod("1", kubebatch.SchedulerName, 3)
	s.OnUpdate(first, changed)
	s.want(t, "one of them changes")
	s.OnDelete(second)
	s.want(t, "one of them goes")
	s.setBudget(budgetOf("job", 2))
	s.want(t, "the budget comes", "add 1 pdb:budget")
	s.OnAdd(ownedPod("3", kubebatch.SchedulerName, 4), false)
	s.want(t, "a member comes after it", "add 3 pdb:budget")
	s.deleteBudget(budgetOf("job", 2))
	slices.Sort(s.got)
	s.want(t, "the budget goes", "add 1 ", "add 3 ", "delete 1 pdb:budget", "delete 3 pdb:budget")
}

// A pod that no budget can make a member is shown at once.
func TestPodsThatAreNotAmbiguous(t *testing.T) {
	s := newShown(t, time.Hour)
	s.OnAdd(ownedPod("1", kubebatch.SchedulerName, 1), true)
	s.want(t, "at the start, when budgets are waited for", "add 1 ")
	s.OnAdd(ownedPod("2", "gang-scheduler", 2), false)
	s.want(t, "a pod of another scheduler, where budgets make no gangs", "add 2 ")
	alone := ownedPod("3", kubebatch.SchedulerName, 3)
	alone.OwnerReferences = nil
	s.OnAdd(alone, false)
	s.want(t, "a pod without a controller", "add 3 ")
	placed := ownedPod("4", kubebatch.SchedulerName, 4)
	placed.Spec.NodeName = "n1"
	s.OnAdd(placed, false)
	s.want(t, "a pod with a node", "add 4 ")
	waiting, bound := ownedPod("5", kubebatch.SchedulerName, 5), ownedPod("5", kubebatch.SchedulerName, 6)
	s.OnAdd(waiting, false)
	bound.Spec.NodeName = "n1"
	s.OnUpdate(waiting, bound)
	s.want(t, "a pod that is bound meanwhile", "add 5 ")
	s.setBudget(budgetOf("another job", 2))
	s.OnAdd(ownedPod("6", "gang-scheduler", 7), false)
	s.want(t, "where budgets make gangs, of any scheduler")
}

// A pod without a budget is a pod on its own after a while.
func TestNoBudget(t *testing.T) {
	s := newShown(t, time.Millisecond)
	s.OnAdd(ownedPod("1", kubebatch.SchedulerName, 1), false)
	eventually(t, "it is shown", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.got) > 0
	})
	s.want(t, "after a while", "add 1 ")
}
