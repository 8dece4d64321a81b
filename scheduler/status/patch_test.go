package status

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// rival is another writer of the status of the gang's object.
type rival struct {
	object  *unstructured.Unstructured
	patches int // of ours
}

func newRival(b *bench) *rival {
	_, object, _ := b.Objects.Get(b.key)
	r := &rival{object: object}
	server := b.Dynamic.(*dynamicfake.FakeDynamicClient)
	server.PrependReactor("patch", "podgroups", func(action clienttesting.Action) (bool, runtime.Object, error) {
		r.patches++
		var patch struct {
			Status map[string]any `json:"status"`
		}
		if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &patch); err != nil {
			b.t.Fatal(err)
		}
		r.write(patch.Status)
		return true, r.object.DeepCopy(), nil
	})
	server.PrependReactor("get", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, r.object.DeepCopy(), nil
	})
	return r
}

// write gives the object some fields, and another version.
func (r *rival) write(fields map[string]any) {
	status, _, _ := unstructured.NestedMap(r.object.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	for name, value := range fields {
		if n, ok := value.(float64); ok {
			fields[name] = int64(n)
		}
	}
	maps.Copy(status, fields)
	r.object.Object["status"] = status
	r.object.SetResourceVersion(r.object.GetResourceVersion() + "+")
}

func (r *rival) phase() string {
	phase, _, _ := unstructured.NestedString(r.object.Object, "status", "phase")
	return phase
}

// The controller of scheduler-plugins writes Scheduling as soon as the pods exist,
// whenever it sees the object. Count based.
func TestWritersThatDisagreeWriteAFewTimesAMinute(t *testing.T) {
	b := newBench(t, pod("a", "", corev1.PodPending), pod("b", "", corev1.PodPending))
	r := newRival(b)
	r.write(map[string]any{"phase": "Scheduling"})
	for range 5 * 300 {
		b.reconcile()
		if r.phase() != "Scheduling" {
			r.write(map[string]any{"phase": "Scheduling"})
		}
		b.clock.Step(debounce)
	}
	// The first write is not one of a fight.
	if limit := 5*reasons.PerMinute + 1; r.patches > limit || r.patches < 5 {
		t.Errorf("%d patches in five minutes, want at most %d", r.patches, limit)
	}
	b.pods = []*corev1.Pod{pod("a", "n1", corev1.PodRunning), pod("b", "n2", corev1.PodRunning)}
	b.clock.Step(time.Minute)
	b.reconcile()
	if r.phase() != "Running" {
		t.Errorf("phase %s a minute after the fight, want Running", r.phase())
	}
}

// What no other client writes is written at once, however often it changes.
func TestOwnChangesAreNotPutOff(t *testing.T) {
	b := newBench(t)
	b.required = 1
	r := newRival(b)
	for i := range 50 {
		b.pods = append(b.pods, pod(fmt.Sprint(i), "n1", corev1.PodRunning))
		b.reconcile()
		r.object.SetLabels(map[string]string{"by": fmt.Sprint("somebody else ", i)})
		r.object.SetResourceVersion(r.object.GetResourceVersion() + "+")
	}
	if r.patches != 50 {
		t.Errorf("%d patches of 50 changes", r.patches)
	}
}

// An object that two dialects read has the status of the one that has the members.
func TestAnObjectOfTwoDialectsHasOneWriter(t *testing.T) {
	resource := podGroups("scheduling.sigs.k8s.io", "v1alpha1")
	members := []*corev1.Pod{pod("a", "n1", corev1.PodRunning), pod("b", "n2", corev1.PodRunning)}
	b := benchOf(t, gang.Koordinator, resource, members...)
	r := newRival(b)
	keys := []gang.Key{{Dialect: gang.SchedulerPlugins, Namespace: key.Namespace, Name: key.Name}, b.key}
	look := func() {
		t.Helper()
		for _, b.key = range keys {
			b.reconcile()
			b.clock.Step(debounce)
		}
	}
	b.of = map[gang.Dialect][]*corev1.Pod{gang.SchedulerPlugins: members}
	look()
	b.of = map[gang.Dialect][]*corev1.Pod{gang.Koordinator: members}
	for range 20 {
		look()
	}
	if r.patches != 1 || r.phase() != "Running" {
		t.Errorf("%d patches, the last of phase %s; want 1, of Running", r.patches, r.phase())
	}
	b.of = map[gang.Dialect][]*corev1.Pod{}
	b.clock.Step(time.Minute)
	look()
	if r.patches != 2 || r.phase() != string(schedulerplugins.Phase(2, schedulerplugins.Counts{})) {
		t.Errorf("%d patches, the last of phase %s, when the members are gone", r.patches, r.phase())
	}
}
