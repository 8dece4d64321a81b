package resize

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	typedfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// owning has the API server keep a claim that the job owns, besides others' objects, and serve what a job may own.
func (a *apiServer) owning(t *testing.T) {
	t.Helper()
	job := a.get(t, tfjobs)
	kinds := map[schema.GroupVersionResource]string{tfjobs: "TFJobList", podGroups: "PodGroupList"}
	for _, gvr := range append(resize.OwnedResources(&gang.Job{Object: job}), resize.OtherResources()...) {
		kinds[gvr] = gvr.Resource + "List"
	}
	claim := func(name string, owners ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"namespace": "team", "name": name, "ownerReferences": owners}}}
	}
	owner := func(uid string) any {
		return map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "llama", "uid": uid}
	}
	a.FakeDynamicClient = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, job, a.get(t, podGroups),
		claim("checkpoints", owner(string(job.GetUID()))), claim("others", owner("other")), claim("shared", owner(string(job.GetUID())), owner("other")))
}

// What a job owns and nothing makes again is not lost with it.
func TestRecreateLosesNothing(t *testing.T) {
	a := newAPIServer(t)
	a.owning(t)
	o, to := options(true), a.target(t)
	failed := failure.From(refuseLosses(t.Context(), o.IO, to.client, to.job))
	if failed == nil || !strings.Contains(failed.Message, "would lose what goes with it: PersistentVolumeClaim team/checkpoints") || strings.Contains(failed.Message, "others") || strings.Contains(failed.Message, "shared") {
		t.Errorf("got %+v", failed)
	}
	if want := "kubectl -n team patch persistentvolumeclaims checkpoints --type=merge -p '{\"metadata\":{\"ownerReferences\":null}}'"; failed == nil || !strings.Contains(failed.Hint, want) {
		t.Errorf("got the hint %+v", failed)
	}
	a.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
	})
	if _ = refuseLosses(t.Context(), o.IO, to.client, to.job); !strings.Contains(o.errOut.String(), "whether secrets of TFJob team/llama would be lost is not known") {
		t.Errorf("what may not be listed is not noted: %s", o.errOut)
	}
}

// A record that may not be read is not taken for none: it is reported once, and is an error where another one would replace it.
func TestRecordThatMayNotBeRead(t *testing.T) {
	a := newAPIServer(t)
	to := a.target(t)
	typed := typedfake.NewClientset()
	typed.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("no right"))
	})
	to.client.Typed = typed
	for name, job := range map[string]*gang.Job{"the job is there": to.job, "it is not": nil} {
		o := options(true)
		if record, err := o.kept(t.Context(), to.client, "team", "llama", job); record != nil || err != nil {
			t.Errorf("%s: got %v, %v", name, record, err)
		}
		if got := o.errOut.String(); strings.Count(got, "warning: ") != 1 || !strings.Contains(got, "no right") {
			t.Errorf("%s: reported %q", name, got)
		}
		o.Recreate = true
		if _, err := o.kept(t.Context(), to.client, "team", "llama", job); err == nil || !strings.Contains(err.Error(), "get Secret team/") {
			t.Errorf("%s, to be made again: got %v", name, err)
		}
	}
}

// Only a job that turns out to be fixed, and keeps no change, is made again, if that is permitted.
func TestFixedIsRecreated(t *testing.T) {
	fixed := fmt.Errorf("resize: %w: immutable", errFixed)
	for name, tt := range map[string]struct {
		cause    error
		permit   bool
		begun    bool
		recreate bool
	}{
		"permitted":         {fixed, true, false, true},
		"not permitted":     {fixed, false, false, false},
		"another error":     {errDead, true, false, false},
		"one that is begun": {fixed, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPIServer(t)
			if tt.begun {
				a.interrupted(t, 1)
			}
			a.owning(t)
			o := options(true)
			o.Recreate = tt.permit
			err := o.orRecreate(t.Context(), a.applier(t), a.target(t), tt.cause)
			if recreated := err != nil && strings.Contains(err.Error(), "would lose"); recreated != tt.recreate { // by what recreate refuses first
				t.Errorf("got %v", err)
			}
		})
	}
}

// An API server that is being restarted does not end a change half way.
func TestTransientErrors(t *testing.T) {
	a := newAPIServer(t)
	pods, rehearsals := 0, 0
	a.PrependReactor("patch", "tfjobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if patch := action.(clienttesting.PatchActionImpl); len(patch.PatchOptions.DryRun) > 0 {
			if rehearsals++; rehearsals < 3 {
				return true, nil, apierrors.NewServiceUnavailable("starting")
			}
		}
		return false, nil, nil
	})
	applier := a.applier(t)
	typed := typedfake.NewClientset()
	typed.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if pods++; pods < 3 {
			return true, nil, apierrors.NewTooManyRequests("busy", 1)
		}
		return true, &corev1.PodList{ListMeta: metav1.ListMeta{}}, nil
	})
	applier.client.Typed = typed
	if err := applier.rehearse(t.Context()); err != nil || rehearsals != 3 {
		t.Fatalf("%v after %d rehearsals", err, rehearsals)
	}
	if err := applier.apply(t.Context()); err != nil || pods < 3 {
		t.Errorf("%v after %d lists", err, pods)
	}
}

// What a Secret keeps is shown before it is made, down to the command, as another user may have written it; and no value of a variable is.
func TestWhatIsKeptIsShown(t *testing.T) {
	io, _, _, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "team", "name": "board"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"serviceAccountName": "admin", "containers": []any{map[string]any{
			"image": "evil.example/miner", "env": []any{map[string]any{"name": "TOKEN", "value": "s3cret-marker"}}}}}}},
	}}
	if err := (&Options{JobOptions: cmdutil.JobOptions{IO: io}}).showKept("gangctl-resize-job-llama", []*unstructured.Unstructured{u}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Secret gangctl-resize-job-llama keeps what is to be made again:", "image: evil.example/miner", "serviceAccountName: admin", "name: TOKEN"} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("%q is not shown:\n%s", want, errOut)
		}
	}
	if strings.Contains(errOut.String(), "s3cret-marker") {
		t.Errorf("a secret is shown:\n%s", errOut)
	}
}

// A job of the name that another client makes between the deletion and the creation is not taken for the one that was kept: the change would be
// lost, and reported as made.
func TestAnotherClientsJobIsNoneOfOurs(t *testing.T) {
	a := newAPIServer(t)
	a.owning(t)
	to := a.target(t)
	plan := a.applier(t).plan
	record := resize.NewRecord(plan, nil)
	if !strings.HasPrefix(record.Job.GetAnnotations()[resize.MadeFrom], string(record.Deleted)+"/") {
		t.Fatalf("annotations %v", record.Job.GetAnnotations())
	}
	theirs := a.get(t, tfjobs)
	theirs.SetUID("theirs")
	if err := a.Tracker().Update(tfjobs, theirs, "team"); err != nil {
		t.Fatal(err)
	}
	o := options(true)
	err := o.remake(t.Context(), to.client, record)
	if err == nil || !strings.Contains(err.Error(), "another client made one of the name meanwhile") {
		t.Errorf("got %v", err)
	}
}

// A job that was deleted to be made again is found by its record, also on a cluster that serves no other kind of job, and by a user who may read no other.
func TestDeletedJobIsFound(t *testing.T) {
	record := &resize.Record{Deleted: "uid-1", Job: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"namespace": "team", "name": "llama"}, "spec": map[string]any{"parallelism": int64(2)}}}}
	kept, err := record.Secret(batchjob.Reader())
	if err != nil {
		t.Fatal(err)
	}
	kept.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	for name, forbid := range map[string]bool{"no other kind is served": false, "others may not be read": true} {
		for _, arg := range []string{"llama", "job/llama"} {
			s := kubetest.New(t)
			s.NoJobs()
			if forbid {
				s.Refuse("GET /apis/kubeflow.org/v1/namespaces/team/tfjobs/llama", 403, metav1.StatusReasonForbidden, `User "bob" cannot get resource "tfjobs"`, nil)
			}
			s.Answer("GET /api/v1/namespaces/team/secrets/"+kept.Name, 200, kept)
			f, streams := commandtest.Factory("team", time.Time{}, 0, s.Client)
			_, _, failed := commandtest.Run(t.Context(), NewCommand(f, nil), streams, arg, "--workers", "2")
			if failed == nil || failed.Message != "resize Job team/llama: it was deleted to be made again, and is not there yet" || failed.Hint != "complete that: gangctl resize batchjob/llama -n team --recreate" {
				t.Errorf("%s, %s: got %+v", name, arg, failed)
			}
		}
	}
}
