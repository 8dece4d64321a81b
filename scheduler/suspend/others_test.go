package suspend

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

var llama = owned("kubeflow.org/v1", "TFJob", "llama")

// eventCount is how many events have a reason.
func (b *bench) eventCount(reason string) (n int) {
	for {
		select {
		case e := <-b.recorder.Events:
			if strings.Contains(e, reason) {
				n++
			}
		default:
			return n
		}
	}
}

// edit changes the job as others do.
func (b *bench) edit(t *testing.T, suspended bool, labels map[string]string) {
	t.Helper()
	u := b.get(t)
	u.SetLabels(labels)
	if err := unstructured.SetNestedField(u.Object, suspended, "spec", "runPolicy", "suspend"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.jobs.Resource(Resources()[0]).Namespace("ns").Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) resume(t *testing.T) {
	t.Helper()
	for range readEvery {
		if err := b.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// losing has the answers to patches lost that are done.
func (b *bench) losing() (lost *bool) {
	lost = new(bool)
	*lost = true
	b.jobs.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !*lost {
			return false, nil, nil
		}
		_, _, err := clienttesting.ObjectReaction(b.jobs.Tracker())(action)
		return true, nil, errors.Join(err, errors.New("connection reset"))
	})
	return lost
}

// Whoever tries again finds the job suspended by us.
func TestALostAnswerIsFoundByTryingAgain(t *testing.T) {
	b := newBench(tfjob("llama", nil))
	j, _ := Of(llama)
	b.losing()
	if err := b.Suspend(t.Context(), j, Order{Reason: "Why"}); err == nil || b.ours(j.UID) || !isSuspended(b.get(t)) {
		t.Fatalf("got %v; want the job suspended, and no event", err)
	}
	for range 2 {
		if err := b.Suspend(t.Context(), j, Order{Reason: "Why"}); err != nil || !b.ours(j.UID) {
			t.Fatalf("not remembered: %v", err)
		}
	}
	if n := b.eventCount("Why"); n != 1 {
		t.Errorf("reported %d times", n)
	}
}

// If no caller tries again, the jobs are listed.
func TestALostAnswerIsFoundByListing(t *testing.T) {
	b := newBench(tfjob("llama", nil))
	j, _ := Of(llama)
	if err := b.Recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost := b.losing()
	if err := b.Suspend(t.Context(), j, Order{}); err == nil {
		t.Fatal("the answer is not lost")
	}
	*lost, b.pods = false, false
	b.clock.Step(recallUnanswered)
	if err := b.Recall(t.Context()); err != nil || !b.ours(j.UID) {
		t.Fatalf("not found: %v", err)
	}
	if b.resume(t); isSuspended(b.get(t)) {
		t.Error("not resumed")
	}
}

// A user resumes the job before we do, and it runs.
func TestAnotherUserResumesAJob(t *testing.T) {
	j, _ := Of(llama)
	mine := map[string]string{Label: Value}
	for name, labels := range map[string]map[string]string{"with gangctl": nil, "with kubectl": mine} {
		b := newBench(tfjob("llama", nil))
		if err := b.Suspend(t.Context(), j, Order{Reason: "Why"}); err != nil {
			t.Fatal(err)
		}
		b.kept = true
		if b.resume(t); !b.ours(j.UID) || !isSuspended(b.get(t)) {
			t.Fatalf("%s: it is to be kept", name)
		}
		b.edit(t, false, labels)
		if b.resume(t); b.ours(j.UID) {
			t.Errorf("%s: its pods are still taken for leaving", name)
		}
		if len(b.get(t).GetLabels()) > 0 {
			t.Errorf("%s: our label outlasts the suspension", name)
		}
		if n := b.eventCount(ReasonResumed); n > 0 {
			t.Errorf("%s: an event reports that we resumed it", name)
		}
		// Its own suspension is not ours to end.
		b.edit(t, true, nil)
		b.pods, b.kept = false, false
		if b.resume(t); !isSuspended(b.get(t)) {
			t.Errorf("%s: a user's suspension was ended", name)
		}
	}
}

// Between our suspension and our look, a user resumed the job and suspended it.
func TestAUsersSuspensionInPlaceOfOurs(t *testing.T) {
	b := newBench(tfjob("llama", nil))
	j, _ := Of(llama)
	if err := b.Suspend(t.Context(), j, Order{}); err != nil {
		t.Fatal(err)
	}
	b.edit(t, true, nil)
	b.pods = false
	if b.resume(t); !isSuspended(b.get(t)) || b.ours(j.UID) {
		t.Error("a user's suspension was ended, or is taken for ours")
	}
}

// A job that runs again is suspended again, whatever is remembered of it.
func TestAJobThatRunsAgainIsSuspendedAgain(t *testing.T) {
	b := newBench(tfjob("llama", nil))
	j, _ := Of(llama)
	for range 2 {
		if err := b.Suspend(t.Context(), j, Order{Reason: "Why"}); err != nil || !isSuspended(b.get(t)) || !b.ours(j.UID) {
			t.Fatalf("not suspended: %v", err)
		}
		b.edit(t, false, nil)
	}
	if n := b.eventCount("Why"); n != 2 {
		t.Errorf("reported %d times", n)
	}
	if err := b.Check(t.Context(), j); err != nil || b.ours(j.UID) {
		t.Errorf("still remembered: %v", err)
	}
}

// What is decided of a job is written only if it still is as it was.
func TestAWriteIsForTheJobThatWasRead(t *testing.T) {
	u := tfjob("llama", nil)
	u.SetResourceVersion("7")
	b := newBench(u)
	var patches []string
	b.jobs.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patches = append(patches, string(action.(clienttesting.PatchAction).GetPatch()))
		return false, nil, nil
	})
	j, _ := Of(llama)
	if err := b.Suspend(t.Context(), j, Order{}); err != nil {
		t.Fatal(err)
	}
	b.pods = false
	b.resume(t)
	if len(patches) != 2 || !strings.Contains(patches[0], `"resourceVersion":"7"`) || !strings.Contains(patches[1], `"resourceVersion":"7"`) {
		t.Errorf("wrote %q", patches)
	}
}
