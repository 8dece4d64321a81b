package diagnose

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// hopeful is a gang of workers with 8 GPUs each; none of them, if missing, has a pod.
func hopeful(workers int, missing bool) clustertest.Gang {
	g := clustertest.Gang{Name: "gang", Workers: workers, GPUs: 8, Age: 30 * time.Second}
	if missing {
		g.Missing = workers
	}
	return g
}

// namespaceOnly are the refusals of a user who may read namespace team and nothing else.
func namespaceOnly() []snapshot.Denial {
	var all []snapshot.Denial
	for _, cluster := range []string{"nodes", "namespaces", "persistentvolumes", "priorityclasses.scheduling.k8s.io"} {
		all = append(all, snapshot.Denial{Resource: cluster})
	}
	for _, namespaced := range []string{"pods", "tfjobs.kubeflow.org", "podgroups.scheduling.x-k8s.io", "deployments.apps", "leases.coordination.k8s.io"} {
		all = append(all, snapshot.Denial{Resource: namespaced, ExceptNamespaces: []string{"team"}})
	}
	return all
}

func TestRights(t *testing.T) {
	tests := map[string]struct {
		build    func(*clustertest.Cluster)
		code     answer.Code
		exit     int
		decisive []string
		lost     []string // of further rights that were missed
		stage    map[answer.Stage]string
	}{
		"one namespace": {build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(hopeful(2, false))
			c.S.Nodes, c.S.Denied, c.S.Caller = nil, namespaceOnly(), "system:serviceaccount:team:reader"
		}, code: answer.NoPermission, exit: 8, decisive: []string{"list nodes", "list pods in all namespaces"},
			stage: map[answer.Stage]string{answer.StagePods: answer.StateOK, answer.StagePodGroup: answer.StateOK, answer.StageScheduler: answer.StateOK, answer.StagePlacement: answer.StateUnknown, answer.StageOrder: answer.StateSkipped}},
		"ElasticQuotas": {build: func(c *clustertest.Cluster) {
			c.Deployment("scheduler-plugins", "scheduler-plugins-scheduler", "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.34.7")
			g := hopeful(2, false)
			g.Scheduler = "scheduler-plugins-scheduler"
			c.GangScheduler(g.Scheduler).Nodes(2, 8).Add(g)
			c.S.Denied = []snapshot.Denial{{Resource: "elasticquotas.scheduling.x-k8s.io"}}
		}, code: answer.Fits, exit: 3, decisive: []string{"list elasticquotas.scheduling.x-k8s.io in all namespaces"}},
		"a definite reason before what cannot be seen": {build: func(c *clustertest.Cluster) {
			g := hopeful(2, true)
			g.Job = func(job map[string]any) {
				job["spec"].(map[string]any)["runPolicy"] = map[string]any{"suspend": true}
			}
			c.Nodes(2, 8).Add(g)
			c.S.Nodes, c.S.Denied = nil, namespaceOnly()
		}, code: answer.JobSuspended, exit: 4, lost: []string{"placement is unknown", "what holds the nodes is unknown"}},
		"no right that matters": {build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(hopeful(2, false))
			c.S.Denied = []snapshot.Denial{{Resource: "persistentvolumes"}}
		}, code: answer.TooBig, exit: 6},
		"no group can be seen": {build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(hopeful(2, false))
			c.S.Denied = []snapshot.Denial{{Resource: "podgroups.scheduling.x-k8s.io"}}
			delete(c.S.Custom, schema.GroupKind{Group: "scheduling.x-k8s.io", Kind: "PodGroup"})
		}, code: answer.Fits, exit: 3, decisive: []string{"list podgroups.scheduling.x-k8s.io in namespace team"},
			stage: map[answer.Stage]string{answer.StagePodGroup: answer.StateUnknown}},
		"not even the pods": {build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(hopeful(2, false))
			c.S.Pods, c.S.Denied = nil, []snapshot.Denial{{Resource: "pods"}}
		}, code: answer.NoPermission, exit: 8, decisive: []string{"list pods in namespace team"}},
		"why there are no pods": {build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(hopeful(2, true))
			c.S.Denied = []snapshot.Denial{{Resource: "resourcequotas"}, {Resource: "pods", Verb: snapshot.VerbCreate}}
		}, code: answer.Fits, exit: 3, decisive: []string{"list resourcequotas in namespace team", "create pods in namespace team"},
			stage: map[answer.Stage]string{answer.StagePods: answer.StateUnknown}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New()
			tt.build(c)
			a, err := Explain(context.Background(), c.Done(), Query{Namespace: "team", Name: "gang"}, Options{NoAdvice: true})
			if err != nil {
				t.Fatal(err)
			}
			if a.Primary.Code != tt.code || a.Exit != tt.exit {
				t.Fatalf("got %s exit %d: %s", a.Primary.Code, a.Exit, a.Headline)
			}
			var decisive, lost []string
			for _, r := range a.Rights.Missing {
				if lost = append(lost, r.Lost); r.Decisive {
					decisive = append(decisive, r.String())
				}
				if r.Lost == "" {
					t.Errorf("%s: nothing is reported to be lost", r)
				}
			}
			if !slices.Equal(decisive, tt.decisive) {
				t.Errorf("decisive: %q, want %q", decisive, tt.decisive)
			}
			if (a.Rights.Grant == "") != (len(decisive) == 0) || a.Rights.GrantAll == "" {
				t.Errorf("grants: %q, all: %q", a.Rights.Grant, a.Rights.GrantAll)
			}
			for _, want := range tt.lost {
				if !slices.Contains(lost, want) {
					t.Errorf("%q is not reported to be lost: %q", want, lost)
				}
			}
			for _, s := range a.Stages {
				if want, ok := tt.stage[s.Name]; ok && s.State != want {
					t.Errorf("stage %s is %s (%s), want %s", s.Name, s.State, s.Note, want)
				}
			}
		})
	}
}

// A user who may not see the jobs gets that reported, with the missing right; what is not seen is not reported as missing.
func TestUnlisted(t *testing.T) {
	const message = `tfjobs.kubeflow.org is forbidden: User "eve" cannot list resource "tfjobs" in API group "kubeflow.org" in the namespace "team"`
	c := clustertest.New().Nodes(1, 8).Add(hopeful(1, false))
	c.S.Custom = nil
	c.S.Caller, c.S.Denied = "eve", []snapshot.Denial{{Resource: "tfjobs.kubeflow.org", Message: message}, {Resource: "pods", ExceptNamespaces: []string{"team"}}}
	s := c.Done()
	for _, kind := range []string{"", "tfjob", "pod"} {
		a, err := Explain(context.Background(), s, Query{Kind: kind, Namespace: "team", Name: "lama"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if a.Exit != answer.ExitUnknown || a.Primary.Code != answer.NoPermission || a.Primary.Message != "list TFJobs in namespace team: "+message {
			t.Errorf("%s: got %s exit %d: %s", kind, a.Primary.Code, a.Exit, a.Primary.Message)
		}
		if !a.Rights.Missing[0].Decisive || !strings.Contains(a.Rights.Grant, "- tfjobs\n") || !strings.Contains(a.Rights.Grant, "name: eve\n") || strings.Contains(a.Rights.Grant, "- pods\n") {
			t.Errorf("%s: %+v", kind, a.Rights)
		}
	}
	if a := Unlisted(s, Query{Namespace: "team", Kind: "pytorchjob"}); a != nil {
		t.Errorf("PyTorchJobs may be listed, got %s", a.Headline)
	}
	if a := Unlisted(s, Query{Kind: "pod", Namespace: "other"}); a == nil || !strings.HasPrefix(a.Primary.Message, "list Pods in namespace other: forbidden") {
		t.Errorf("got %+v", a)
	}
}

// The names of the schema are those of the answer.
func TestRightsAreInTheSchema(t *testing.T) {
	raw, err := os.ReadFile(docs + "schema.json")
	if err != nil {
		t.Fatal(err)
	}
	root := &jsonSchema{}
	if err := json.Unmarshal(raw, root); err != nil {
		t.Fatal(err)
	}
	c := clustertest.New().Nodes(2, 8).Add(hopeful(2, false))
	c.S.Denied, c.S.Caller = namespaceOnly(), "eve"
	for _, q := range []Query{{Namespace: "team", Name: "gang"}, {Namespace: "other", Name: "gone"}} {
		a, err := Explain(context.Background(), c.Done(), q, Options{})
		if err != nil {
			t.Fatal(err)
		}
		validate(t, root, a)
	}
}
