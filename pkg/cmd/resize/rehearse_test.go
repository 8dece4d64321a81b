package resize

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// suspendedJob is a job of two workers with two GPUs each, which is suspended, on two nodes of four.
func suspendedJob(t *testing.T) *target {
	t.Helper()
	s := clustertest.New().Nodes(2, 4).Add(clustertest.Gang{Namespace: "team", Name: "llama", Workers: 2, GPUs: 2, Missing: 2, Job: func(u map[string]any) {
		if err := unstructured.SetNestedField(u, true, "spec", "runPolicy", "suspend"); err != nil {
			t.Fatal(err)
		}
	}}).Done()
	w := view.New(s)
	found, err := w.Find(view.Query{Namespace: "team", Name: "llama"})
	if err != nil {
		t.Fatal(err)
	}
	of := &target{snapshot: s, gang: w.Gang(found)}
	for kind, list := range s.Custom {
		switch kind.Kind {
		case "TFJob":
			if of.job, err = jobs.Read(list[0]); err != nil {
				t.Fatal(err)
			}
		case "PodGroup":
			of.group = list[0]
		}
	}
	return of
}

// A job that is suspended is judged as if it were resumed, by --dry-run=fit and before it is changed.
func TestFitOfSuspended(t *testing.T) {
	for name, c := range map[string]struct {
		gpus         int64
		code         int
		stdout, note string
		never        string
	}{
		"room": {4, 0, "if it were resumed", "", "resume it"},
		"none": {8, 6, "if it were resumed", "note: it is suspended; resumed now, it would not start: ", "submit it"},
	} {
		t.Run(name, func(t *testing.T) {
			of := suspendedJob(t)
			plan, err := resize.New(of.gang, of.job.Object, of.group, resize.Change{Roles: []resize.Role{{Name: "Worker", GPUs: &c.gpus}}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			io, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
			o := &Options{DryRun: dryRunFit}
			o.IO = io
			code := 0
			if err := o.rehearseFit(t.Context(), of, plan); err != nil {
				code = int(failure.From(err).Code)
			}
			if code != c.code || !strings.Contains(out.String(), c.stdout) || strings.Contains(out.String(), "SUSPENDED") || strings.Contains(out.String(), c.never) {
				t.Errorf("exit %d:\n%s", code, out)
			}
			if err := o.requireFit(t.Context(), of, plan); err != nil || !strings.HasPrefix(errOut.String(), c.note) || c.note == "" && errOut.Len() > 0 {
				t.Errorf("got %v, %q", err, errOut)
			}
		})
	}
}
