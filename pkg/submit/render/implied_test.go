package render

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
)

const serviceFile = `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: llama, namespace: research}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 3
    workerTemplate: {spec: {containers: [{name: main, image: i}]}}
`

// serviceOf is a LeaderWorkerSet with a value at a path.
func serviceOf(t *testing.T, value any, path ...string) *unstructured.Unstructured {
	t.Helper()
	u := object(t, serviceFile)
	if len(path) > 0 {
		set(u, value, path...)
	}
	return u
}

// A job of several gangs, which its controller labels, is given the scheduler and nothing else.
func TestCompleteImplied(t *testing.T) {
	workers := []string{"spec", "leaderWorkerTemplate", "workerTemplate", "spec", "schedulerName"}
	annotation := []string{"spec", "leaderWorkerTemplate", "workerTemplate", "metadata", "annotations", gang.DialectAnnotation}
	for name, tt := range map[string]struct {
		job  *unstructured.Unstructured
		s    FileSpec
		want string
		at   []string
		note string
	}{
		"the scheduler":      {job: serviceOf(t, nil), s: fileSpec(), want: fileSpec().Scheduler, at: workers},
		"the file's":         {job: serviceOf(t, "mine", workers...), s: fileSpec(), want: "mine", at: workers},
		"volcano's":          {job: serviceOf(t, "volcano", workers...), s: fileSpec(), want: "volcano", at: workers, note: "makes PodGroups for that scheduler"},
		"none, on any":       {job: serviceOf(t, nil), s: fileSpec(func(s *FileSpec) { s.Dialect, s.DialectSet = gang.None, true }), want: "none", at: annotation},
		"none, on no gang's": {job: serviceOf(t, "LeaderReady", "spec", "startupPolicy"), s: fileSpec(func(s *FileSpec) { s.Dialect, s.DialectSet = gang.None, true }), at: workers},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Complete(tt.job, nil, tt.s)
			if err != nil {
				t.Fatal(err)
			}
			if got, _, _ := unstructured.NestedString(c.Job.Object, tt.at...); got != tt.want {
				t.Errorf("%s is %q, want %q", tt.at[len(tt.at)-1], got, tt.want)
			}
			if _, found, _ := unstructured.NestedMap(c.Job.Object, "spec", "leaderWorkerTemplate", "leaderTemplate"); found || len(c.PodGroups) > 0 {
				t.Errorf("a leader's template: %v; a PodGroup: %v", found, c.PodGroups)
			}
			if !strings.Contains(strings.Join(c.Notes, "\n"), tt.note) {
				t.Errorf("notes %v, want %q", c.Notes, tt.note)
			}
		})
	}
}

func TestCompleteImpliedRefuses(t *testing.T) {
	own := serviceOf(t, "default-scheduler", "spec", "leaderWorkerTemplate", "workerTemplate", "spec", "schedulerName")
	for name, tt := range map[string]struct {
		job, group *unstructured.Unstructured
		s          FileSpec
		want       string
		is         error
	}{
		"the leader first":    {job: serviceOf(t, "LeaderReady", "spec", "startupPolicy"), s: fileSpec(), want: "startupPolicy: LeaderReady", is: ErrSequential},
		"no gangs' scheduler": {job: own, s: fileSpec(), want: "which scheduler default-scheduler does not know", is: ErrNotEnforced},
		"a dialect":           {job: serviceOf(t, nil), s: fileSpec(func(s *FileSpec) { s.DialectSet = true }), want: "one pod template cannot name a group for each"},
		"a minimum":           {job: serviceOf(t, nil), s: fileSpec(func(s *FileSpec) { s.MinAvailable = 2 }), want: "--min-available contradicts the file"},
		"a group":             {job: serviceOf(t, nil), group: podGroupNamed(t, "mine"), s: fileSpec(), want: "it holds PodGroup mine, but each of its replicas is a gang of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Complete(tt.job, held(tt.group), tt.s)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got %v", err)
			}
		})
	}
}
