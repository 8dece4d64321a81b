package choose

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
)

const queues = "localqueues.kueue.x-k8s.io/v1beta2"

// What a job depends on is decided by what is served; without a cluster it is what gangctl's own scheduler reads.
func TestDecide(t *testing.T) {
	tf, mpi := tfjob.Reader().GroupKind, mpijob.Reader().GroupKind
	tests := map[string]struct {
		served  string
		request Request
		want    Decision
		unread  bool
	}{
		"as typed":                     {"", Request{Kind: tf, Dialect: gang.Labels}, Decision{Dialect: gang.Labels, Scheduler: "gang-scheduler"}, false},
		"declared in a file":           {"", Request{Kind: tf, Dialect: Auto, Declared: true}, Decision{Dialect: gang.SchedulerPlugins, Scheduler: "gang-scheduler"}, false},
		"the version that is served":   {native6, Request{Kind: tf, Dialect: gang.Native}, Decision{Dialect: gang.Native}, false},
		"a queue of Volcano":           {vol, Request{Kind: tf, Dialect: gang.Volcano, Queue: "q"}, Decision{Dialect: gang.Volcano, Scheduler: "volcano", Queue: "q"}, false},
		"a queue of Kueue":             {sp + " " + queues, Request{Kind: tf, Dialect: gang.SchedulerPlugins, Queue: "q"}, Decision{Dialect: gang.SchedulerPlugins, Scheduler: "gang-scheduler", LocalQueue: "q"}, false},
		"a queue that is not read":     {sp, Request{Kind: tf, Dialect: gang.SchedulerPlugins, Queue: "q"}, Decision{}, true},
		"an MPIJob of either operator": {"mpijobs.kubeflow.org/v1 mpijobs.kubeflow.org/v2beta1", Request{Kind: mpi, Dialect: gang.None}, Decision{Dialect: gang.None, JobVersion: "v2beta1"}, false},
		"an MPIJob":                    {"mpijobs.kubeflow.org/v1", Request{Kind: mpi, Dialect: gang.None}, Decision{Dialect: gang.None, JobVersion: "v1"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Facts{Mapper: Recorded(strings.Fields(tt.served))}.Decide(tt.request)
			var unread *UnreadQueueError
			if tt.unread {
				if !errors.As(err, &unread) || unread.Queue != tt.request.Queue {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if err != nil || len(got) != 1 {
				t.Fatalf("got %+v, %v", got, err)
			}
			if version := got[0].Version; !version.Empty() && !strings.Contains(tt.served, "podgroups."+version.Group+"/"+version.Version) {
				t.Errorf("%s is not served", version)
			}
			got[0].Version = tt.want.Version
			if got[0] != tt.want {
				t.Errorf("got %+v, want %+v", got[0], tt.want)
			}
		})
	}
	offline := Request{Kind: tf, Dialect: Auto, Queue: "q"}.Offline()
	if want := (Decision{Dialect: gang.SchedulerPlugins, Scheduler: "gang-scheduler", LocalQueue: "q"}); offline != want {
		t.Errorf("offline: got %+v", offline)
	}
}

// A request that leaves nothing to the cluster needs no discovery.
func TestNeedsCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		request Request
		want    bool
	}{
		"auto":               {Request{Dialect: Auto}, true},
		"auto, but declared": {Request{Dialect: Auto, Declared: true}, false},
		"one version":        {Request{Dialect: gang.SchedulerPlugins}, false},
		"several versions":   {Request{Dialect: gang.Native}, true},
		"its own queue":      {Request{Dialect: gang.Volcano, Queue: "q"}, false},
		"a queue of Kueue":   {Request{Dialect: gang.Labels, Queue: "q"}, true},
		"an MPIJob":          {Request{Kind: mpijob.Reader().GroupKind, Dialect: gang.None}, true},
	} {
		if got := tt.request.NeedsCluster(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The answer for a job that would not be submitted is for the scheduler that serves, and names it where it is another one.
func TestServing(t *testing.T) {
	operator := deployed("training-operator", "kubeflow/training-operator", 1, "--gang-scheduler-name=gang")
	s := &snapshot.Snapshot{At: now.Add(time.Second), Deployments: []*appsv1.Deployment{deployed("gang", "gangctl", 1), operator}}
	f := Facts{Cluster: view.New(s)}
	d := f.Serving(Request{Dialect: gang.SchedulerPlugins})
	if d.Scheduler != "gang" || !strings.Contains(d.Note, "submit with --scheduler gang") {
		t.Errorf("got %+v", d)
	}
	if d := f.Serving(Request{Dialect: gang.SchedulerPlugins, Scheduler: "mine"}); d.Scheduler != "mine" || d.Note != "" {
		t.Errorf("got %+v", d)
	}
}

// What members prefer is stated where the dialect has no words of its own for it, or gangctl's scheduler reads it; other ways to submit the job are
// left out.
func TestStating(t *testing.T) {
	all := []Decision{{Dialect: gang.Native}, {Dialect: gang.SchedulerPlugins}, {Dialect: gang.Volcano, Scheduler: "volcano"}, {Dialect: gang.Volcano, Scheduler: "gang-scheduler"}, {Dialect: gang.None, Scheduler: "gang-scheduler"}}
	if got, err := (Request{}).Stating(all); err != nil || len(got) != len(all) {
		t.Errorf("without a preference: %v, %v", got, err)
	}
	prefers := Request{Preferred: []string{"rack"}}
	if got, err := prefers.Stating(all); err != nil || len(got) != 2 || got[0] != all[1] || got[1] != all[3] {
		t.Errorf("got %v, %v", got, err)
	}
	var unstated *UnstatedPreferenceError
	if _, err := prefers.Stating(all[:1]); !errors.As(err, &unstated) || unstated.Dialect != gang.Native {
		t.Errorf("got %v", err)
	}
}
