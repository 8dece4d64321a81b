package gang

import (
	"math"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The pods of a job that has none yet are in its namespace, by which their group is found; templates have no namespace.
func TestPodsOfTemplates(t *testing.T) {
	job := &Job{Meta: metav1.ObjectMeta{Namespace: "team", Name: "llama"}, Roles: []Role{{Name: "Worker", Replicas: 2}}}
	pods := PodsOf(job, nil)
	if len(pods) != 1 || pods[0].Namespace != "team" {
		t.Errorf("got %v", pods)
	}
	if job.Roles[0].Template.Namespace != "" {
		t.Error("the template was changed")
	}
}

// A deadline that no duration holds is the longest, and not one that has passed, or comes soon.
func TestSeconds(t *testing.T) {
	longest := time.Duration(maxSeconds) * time.Second
	for n, want := range map[int64]time.Duration{0: 0, 90: 90 * time.Second, -1: -time.Second, maxSeconds: longest, maxSeconds + 1: longest, 1<<55 + 60: longest,
		math.MaxInt64: longest, math.MinInt64: -longest} {
		if got := Seconds(n); got != want {
			t.Errorf("%d s: got %s, want %s", n, got, want)
		}
		f := &Fields{Object: &unstructured.Unstructured{Object: map[string]any{"a": n, "b": float64(n), "c": "1"}}}
		if got := f.Seconds("a"); got != want || f.Err != nil {
			t.Errorf("%d s in an object: got %s, want %s, %v", n, got, want, f.Err)
		}
		if got := f.Seconds("b"); (got-want).Abs() > time.Hour || f.Seconds("missing") != 0 || f.Err != nil {
			t.Errorf("%g s in an object: got %s, want %s, %v", float64(n), got, want, f.Err)
		}
		if f.Seconds("c"); f.Err == nil {
			t.Error("a text is taken for a number")
		}
	}
}

// A group is meant for members that name none, or one that their scheduler made and that holds none back; not for those that name another one, be it missing.
func TestMeant(t *testing.T) {
	meant := []Declaration{{MinMember: 4}}
	for _, test := range []struct {
		of   Declared
		want bool
	}{
		{Declared{Unjoined: meant}, true},
		{Declared{Unjoined: meant, Named: Key{Name: "lost"}}, false},
		{Declared{Unjoined: meant, Named: Key{Name: "podgroup-uid"}, OfScheduler: true}, true},
		{Declared{}, false},
	} {
		if got := (&Gang{Declared: test.of}).Meant() != nil; got != test.want {
			t.Errorf("%+v: %v", test.of, got)
		}
	}
}

// Pods of a Job that find each other are of no use alone, also where their scheduler has made a group for them.
func TestPodsThatFindEachOther(t *testing.T) {
	for subdomain, want := range map[string]int32{"": 1, "gang": 4} {
		j := &batchv1.Job{Spec: batchv1.JobSpec{CompletionMode: new(batchv1.IndexedCompletion), Completions: new(int32(4)), Parallelism: new(int32(4))}}
		j.Spec.Template.Spec.Subdomain = subdomain
		job := &Job{BatchJob: j, Reader: JobReader{GroupKind: schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}}, Roles: []Role{{Name: "Pod", Replicas: 4}}}
		for _, of := range []Declared{{}, {Decl: &Declaration{MinMember: 1}, Named: Key{Name: "podgroup-uid"}, OfScheduler: true}} {
			if got := (&Gang{Job: job, Declared: of}).minimum(); got != want {
				t.Errorf("subdomain %q, made by the scheduler %v: %d, want %d", subdomain, of.OfScheduler, got, want)
			}
		}
	}
}
