package stages_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
	"github.com/gangctl/gangctl/pkg/gang"
)

// sound checks what holds for every diagnosis.
func sound(t *testing.T, what string, r *stage.Diagnosis) {
	t.Helper()
	wrong := func(format string, args ...any) { t.Helper(); t.Errorf(what+format, args...) }
	switch {
	case r.Primary == nil:
		if r.Verdict != answer.Running && r.Verdict != answer.Done {
			wrong("%s without a reason", r.Verdict)
		}
	case r.Verdict != r.Primary.Verdict || r.Who != r.Primary.Who || r.Never != r.Primary.Never:
		wrong("%s %s %v is not what %s has", r.Verdict, r.Who, r.Never, r.Primary.Code)
	case r.Never && r.Verdict != answer.Blocked:
		wrong("%s, and never", r.Verdict)
	}
	for _, f := range r.Findings() {
		if !slices.Contains(answer.Codes(), f.Code) {
			wrong("%s is no code", f.Code)
		}
		entry := answer.Lookup(f.Code)
		if !slices.Contains(entry.Stages, f.Stage) || !slices.ContainsFunc(entry.Outcomes, func(o answer.Outcome) bool {
			return o.Verdict == f.Verdict && o.Who == f.Who && o.Never == f.Never
		}) {
			wrong("%s: the table of codes has no stage %s, or no %s %s %v", f.Code, f.Stage, f.Verdict, f.Who, f.Never)
		}
		if !slices.Contains(answer.Stages(), f.Stage) || f.Who == "" {
			wrong("%s: stage %q, who %q", f.Code, f.Stage, f.Who)
		}
		for _, line := range append([]string{f.Message}, f.Details...) {
			if line == "" || strings.ContainsAny(line, "\n") || strings.Contains(line, "%!") || strings.TrimRight(line, " ") != line {
				wrong("%s has %q", f.Code, line)
			}
		}
		if len(f.Facts)+len(f.Evidence) == 0 {
			wrong("%s has nothing for programs: %s", f.Code, f.Message)
		}
		if strings.HasSuffix(f.Message, ".") {
			wrong("%s ends in a full stop: %s", f.Code, f.Message)
		}
		for _, command := range f.Commands {
			if command == "" {
				wrong("%s has an empty command", f.Code)
			}
		}
		if _, err := json.Marshal(f.Finding); err != nil {
			wrong("%s: %v", f.Code, err)
		}
		for _, x := range f.Fixes {
			if x.Text == "" || x.By == "" || x.Kind == "" || x.Apply == nil || len(x.Change) == 0 {
				wrong("%s: half a fix: %+v", f.Code, x.Action)
			}
		}
	}
	for _, note := range slices.Concat(r.Notes, r.Unmodelled) {
		if note == "" || strings.Contains(note, "%!") {
			wrong("notes %q", note)
		}
	}
}

// lacking diagnoses again without one object after the other: whoever made the snapshot may not have been allowed to see it.
func lacking(t *testing.T, build func(*clustertest.Cluster)) {
	t.Helper()
	c := clustertest.New()
	build(c)
	whole := c.Done()
	fields := reflect.TypeFor[snapshot.Snapshot]()
	for i := range fields.NumField() {
		list := reflect.ValueOf(*whole).Field(i)
		if list.Kind() != reflect.Slice || list.Len() == 0 || list.Type().Elem().Kind() != reflect.Pointer {
			continue
		}
		for j := range list.Len() {
			part := whole.Clone()
			left := reflect.ValueOf(part).Elem().Field(i)
			left.Set(reflect.AppendSlice(left.Slice3(0, j, j), left.Slice(j+1, left.Len())))
			diagnoseOrNotFound(t, fmt.Sprintf("without %s %d: ", fields.Field(i).Name, j), part)
		}
	}
	for kind, list := range whole.Custom {
		for j := range list {
			part := whole.Clone()
			part.Custom[kind] = slices.Delete(slices.Clone(list), j, j+1)
			diagnoseOrNotFound(t, fmt.Sprintf("without %s %s: ", kind.Kind, list[j].GetName()), part)
		}
	}
}

func diagnoseOrNotFound(t *testing.T, what string, s *snapshot.Snapshot) {
	t.Helper()
	w := view.New(s)
	job, err := w.Find(view.Query{Namespace: "team", Name: "gang"})
	var missing *gang.JobNotFoundError
	var ambiguous *gang.AmbiguousJobError
	switch {
	case errors.As(err, &missing), errors.As(err, &ambiguous): // the pods of a job that is not there may name several groups
	case err != nil:
		t.Errorf("%s%v", what, err)
	default:
		sound(t, what, stages.Evaluate(context.Background(), w, job, stages.Options{}))
	}
}

// A fix removes the finding that it is for: whatever else there may be, the same code and message do not come again.
func TestFixes(t *testing.T) {
	tests := []struct {
		name  string
		build func(*clustertest.Cluster)
	}{
		{"resume", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, job(set(true, "spec", "runPolicy", "suspend"))))
		}},
		{"priority class", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			refuse(c, `pods "gang-worker-0" is forbidden: no PriorityClass with name golden was found`)
		}},
		{"webhook", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			refuse(c, `admission webhook "policy.example.com" denied the request: missing team label`)
		}},
		{"quota", func(c *clustertest.Cluster) {
			quota(c, "q", clustertest.List("requests.nvidia.com/gpu", "8"), nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
		}},
		{"queue", func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"nvidia.com/gpu": "8"})
			c.Nodes(2, 8).Add(gangOf(2, 8, inQueue("q")))
		}},
		{"closed queue", func(c *clustertest.Cluster) {
			c.Queue("q", "Closed", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, inQueue("q")))
		}},
		{"Kueue's quota", func(c *clustertest.Cluster) {
			pool(c, "24")
			uses(c, "other", "cq", "16")
			c.Add(gangOf(2, 8, kueued))
		}},
		{"Kueue's quota in a cohort", func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "cq")
			q := gpuQuota("8")
			q.Borrow = "4"
			c.ClusterQueue("cq", "pool", q)
			c.ClusterQueue("sister", "pool", gpuQuota("64"))
			c.Add(gangOf(2, 8, kueued))
		}},
		{"a queue that Kueue has stopped", func(c *clustertest.Cluster) {
			set("Hold", "spec", "stopPolicy")(pool(c, "24").Object)
			c.Add(gangOf(2, 8, kueued))
		}},
		{"minimum", func(c *clustertest.Cluster) { c.Nodes(3, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Min = 3 })) }},
		{"minimum on the pods", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Dialect, g.Min = "labels", 3 }))
		}},
		{"minimum of a budget", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, speaks(c, "pdb", "kube-batch"), func(g *clustertest.Gang) { g.Min = 3 }))
		}},
		{"label", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Spec = selects("class", "h1oo") }))
			label(c, "class", "h100", "h100")
		}},
		{"node", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			clustertest.NotReady(c.S.Nodes[1], 0)
		}},
		{"claim", func(c *clustertest.Cluster) {
			pvc(c, "data", "fast", "Pending")
			class(c, "slow", "x", "Immediate")
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{"claim that is being deleted", func(c *clustertest.Cluster) {
			boundClaim(c, "", "ReadWriteMany")
			at := clustertest.Ago(time.Minute)
			c.S.Claims[0].DeletionTimestamp = &at
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{"claim for a volume of another", func(c *clustertest.Cluster) {
			named(c, time.Hour).Spec.ClaimRef = &corev1.ObjectReference{Namespace: "old", Name: "data"}
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
		}},
		{"deadlock", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "other", Workers: 2, GPUs: 8, Nodes: []string{"n2"}}).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := clustertest.New()
			tt.build(c)
			w := view.New(c.Done())
			query := view.Query{Namespace: "team", Name: "gang"}
			job, err := w.Find(query)
			if err != nil {
				t.Fatal(err)
			}
			before := stages.Evaluate(context.Background(), w, job, stages.Options{})
			if before.Primary == nil || len(before.Primary.Fixes) == 0 {
				t.Fatalf("nothing to fix: %+v", before.Primary)
			}
			fixed := w.Assume(before.Primary.Fixes[0].Apply(w.Snap))
			if job, err = fixed.Find(query); err != nil {
				t.Fatal(err)
			}
			for _, f := range stages.Evaluate(context.Background(), fixed, job, stages.Options{}).Findings() {
				if f.Code == before.Primary.Code {
					t.Errorf("still %s: %s", f.Code, f.Message)
				}
			}
			if again := stages.Evaluate(context.Background(), w, job, stages.Options{}); again.Verdict != before.Verdict {
				t.Error("the fix has changed the cluster that it was found in")
			}
		})
	}
}
