package resize

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	typedfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// client is another client of the server. What it patches is refused if it is not what is stored, as API servers do; before is called before each
// of its writes, with the number of that, from 1.
func (a *apiServer) client(before func(write int)) dynamic.Interface {
	kinds := map[schema.GroupVersionResource]string{a.jobs: "JobList", podGroups: "PodGroupList"}
	c, writes := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds), 0
	c.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch, isPatch := action.(clienttesting.PatchActionImpl)
		if isPatch && len(patch.PatchOptions.DryRun) == 0 || action.GetVerb() == "delete" {
			writes++
			before(writes)
		}
		if isPatch {
			stored, err := a.patch(patch)
			return true, stored, err
		}
		for _, r := range a.ReactionChain { // without the lock of that client, in which another one may wait
			if r.Handles(action) {
				if done, object, err := r.React(action.DeepCopy()); done {
					return true, object, err
				}
			}
		}
		return false, nil, nil
	})
	return c
}

// together runs two at a time. The first waits before its write n, where the second begins; before the write m of that, the first goes on to its
// end. Each is given its client.
func (a *apiServer) together(n int, first func(dynamic.Interface) error, m int, second func(dynamic.Interface) error) (errFirst, errSecond error) {
	stopped, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- first(a.client(func(write int) {
			if write == n {
				close(stopped)
				<-goOn
			}
		}))
	}()
	<-stopped
	finish := sync.OnceFunc(func() { close(goOn); errFirst = <-done })
	errSecond = second(a.client(func(write int) {
		if write == m {
			finish()
		}
	}))
	finish()
	return errFirst, errSecond
}

// patch stores a patch under a new version, if it is one of what is stored.
func (a *apiServer) patch(patch clienttesting.PatchActionImpl) (runtime.Object, error) {
	was, err := a.Tracker().Get(patch.Resource, patch.Namespace, patch.Name)
	if err != nil {
		return nil, err
	}
	var of struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(patch.Patch, &of); err != nil {
		return nil, err
	}
	version := was.(*unstructured.Unstructured).GetResourceVersion()
	if of.Metadata.ResourceVersion != version {
		return nil, apierrors.NewConflict(patch.Resource.GroupResource(), patch.Name, errors.New("it was modified"))
	}
	if len(patch.PatchOptions.DryRun) > 0 {
		return was, nil
	}
	_, stored, err := clienttesting.ObjectReaction(a.Tracker())(patch)
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(version) // none counts as 0
	u := stored.(*unstructured.Unstructured).DeepCopy()
	u.SetResourceVersion(strconv.Itoa(n + 1))
	return u, a.Tracker().Update(patch.Resource, u, patch.Namespace)
}

// again runs the command once more, as another user would: with flags, or to take back what has begun.
func (a *apiServer) again(t *testing.T, client dynamic.Interface, workers int, abort bool) error {
	t.Helper()
	o, to := options(true), a.target(t)
	to.client.Dynamic = client
	if abort {
		return o.abort(t.Context(), to)
	}
	if err := o.flagSet.Parse([]string{"--workers", strconv.Itoa(workers)}); err != nil {
		t.Fatal(err)
	}
	plan, err := o.plan(to)
	if err != nil {
		return err
	}
	return newApplier(to.client, o.IO, to.job, plan, o.Timeout, o.Interval).apply(t.Context())
}

// Two runs at a time leave the job and its group as one of them reports it, wherever either is while the other writes.
func TestTwoRuns(t *testing.T) {
	for _, second := range []struct {
		name    string
		workers int
		abort   bool
		is      string
	}{
		{"the same change", 2, false, after},
		{"another change", 3, false, "3 workers, minimum 3, suspended false, begun false"},
		{"taken back", 0, true, before},
	} {
		for n := 1; n <= 3; n++ {
			for m := 1; m <= 4; m++ {
				t.Run(fmt.Sprintf("%s: the first waits before write %d, the second before write %d", second.name, n, m), func(t *testing.T) {
					a := newAPIServer(t)
					applier := a.applier(t)
					errFirst, errSecond := a.together(n, func(client dynamic.Interface) error {
						applier.client.Dynamic = client
						return applier.apply(t.Context())
					}, m, func(client dynamic.Interface) error {
						return a.again(t, client, second.workers, second.abort)
					})
					got := a.stored(t)
					switch {
					case errFirst == nil && errSecond == nil && second.is != after:
						t.Errorf("both report that they are done: %s", got)
					case errFirst == nil && got != after, errSecond == nil && got != second.is:
						t.Errorf("got %s: first %v, second %v", got, errFirst, errSecond)
					case got != before && got != after && got != second.is:
						t.Errorf("got %s, which is nothing whole: first %v, second %v", got, errFirst, errSecond)
					}
					for _, err := range []error{errFirst, errSecond} {
						if err != nil && strings.Contains(err.Error(), "failed as well") {
							t.Errorf("got %v", err)
						}
					}
				})
			}
		}
	}
}

// A change that is taken back while another run makes the launcher again leaves a launcher that is the job's.
func TestTakenBackWhileTheLauncherIsMade(t *testing.T) {
	three := resource.MustParse("3")
	change := resize.Change{Roles: []resize.Role{{Name: "Launcher", CPU: &three}}}
	for n := 1; n <= 5; n++ {
		for m := 1; m <= 3; m++ {
			a := mpiServer(t)
			applier := a.applying(t, change)
			errFirst, errSecond := a.together(n, func(client dynamic.Interface) error {
				applier.client.Dynamic = client
				return applier.apply(t.Context())
			}, m, func(client dynamic.Interface) error {
				return a.again(t, client, 0, true)
			})
			want := "cpu 3, launcher 3, begun false"
			if errSecond == nil {
				want = "cpu 1, launcher 1, begun false"
			}
			if got := a.launched(t); got != want || (errFirst == nil) == (errSecond == nil) {
				t.Errorf("the first waits before write %d, the second before write %d: %s, %v, %v", n, m, got, errFirst, errSecond)
			}
		}
	}
}

// A job that another run has made again for another change is not reported as made for this one.
func TestRecreatedForAnotherChange(t *testing.T) {
	a := newAPIServer(t)
	a.owning(t)
	to, three := a.target(t), int32(3)
	ours, theirs := resize.NewRecord(a.applier(t).plan, nil), resize.NewRecord(a.applying(t, resize.Change{Roles: []resize.Role{{Name: "Worker", Replicas: &three}}}).plan, nil)
	made := theirs.Job.DeepCopy()
	made.SetUID("made")
	if err := a.Tracker().Update(tfjobs, made, "team"); err != nil {
		t.Fatal(err)
	}
	if err := options(true).remake(t.Context(), to.client, ours); err == nil || !strings.Contains(err.Error(), "another client made one of the name meanwhile") {
		t.Errorf("got %v", err)
	}
	if err := options(true).remake(t.Context(), to.client, theirs); err != nil {
		t.Errorf("that run itself: %v", err)
	}
}

// A run that fails before it deletes the job drops its own record, and none that another run has stored over it.
func TestOnlyTheOwnRecordIsDropped(t *testing.T) {
	a := newAPIServer(t)
	a.owning(t)
	to, applier := a.target(t), a.applier(t)
	typed := typedfake.NewClientset()
	applier.client.Typed = typed
	record := resize.NewRecord(applier.plan, nil)
	secret, err := keep(t.Context(), applier.client, to.job.Reader, record)
	if err != nil {
		t.Fatal(err)
	}
	secret.UID, secret.ResourceVersion = "kept", "7"
	if err := options(true).undelete(t.Context(), applier, record, secret, errDead); !errors.Is(err, errDead) {
		t.Errorf("got %v", err)
	}
	for _, action := range typed.Actions() {
		if deleted, ok := action.(clienttesting.DeleteActionImpl); ok {
			if of := deleted.DeleteOptions.Preconditions; of == nil || *of.UID != "kept" || *of.ResourceVersion != "7" {
				t.Errorf("deleted with %+v", of)
			}
			return
		}
	}
	t.Error("its own record stays")
}
