package whypending

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
)

// publish is a busy cluster of so many nodes, whose scheduler has published why
// llama waits, and renewed its lease, so long ago.
func publish(t *testing.T, nodes int, said, renewed time.Duration) *cluster {
	t.Helper()
	l, lease := publishOnly(t, nodes, said, renewed)
	l.Answer(getLease, 200, lease)
	return l
}

const getLease = "GET /apis/coordination.k8s.io/v1/namespaces/gangctl-system/leases/gang-scheduler"

// publishOnly leaves it to the caller to serve the lease.
func publishOnly(t *testing.T, nodes int, said, renewed time.Duration) (*cluster, *coordinationv1.Lease) {
	t.Helper()
	s := busy().Done()
	a, err := diagnose.Explain(t.Context(), s, diagnose.Query{Namespace: "team", Name: "llama"}, diagnose.Options{NoAdvice: true})
	if err != nil {
		t.Fatal(err)
	}
	a.Job.UID = "u1"
	a.Headline, a.Nodes.Total = "as the scheduler sees it", nodes
	at := clustertest.Now.Add(-said)
	a.Snapshot.At = &at
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: published.EventName(types.UID(a.Job.UID))}}
	if err := published.Put(event, a); err != nil {
		t.Fatal(err)
	}
	last := metav1.NewMicroTime(clustertest.Now.Add(-renewed))
	lease := &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		Spec:     coordinationv1.LeaseSpec{HolderIdentity: ptr.To("one"), LeaseDurationSeconds: ptr.To(int32(15)), RenewTime: &last},
	}
	event.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}
	l := serve(t, busy())
	l.Answer("GET /apis/kubeflow.org/v1/namespaces/team/tfjobs/llama", 200, map[string]any{
		"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"namespace": "team", "name": "llama", "uid": a.Job.UID},
	})
	l.Answer("GET /api/v1/namespaces/team/events/"+event.Name, 200, event)
	return l, lease
}

const theirs = "WAITING  as the scheduler sees it"

func TestALargeClusterIsNotReadWhereTheSchedulerHasAnswered(t *testing.T) {
	l := publish(t, largeCluster, 90*time.Second, time.Second)
	out, _, failed := l.ask(t.Context(), "llama")
	if failed == nil || failed.Code != answer.ExitWaiting || !strings.HasPrefix(out, theirs) || !strings.Contains(out, "gang-scheduler found this out 90s ago; --source=cluster looks") {
		t.Errorf("%v\n%s", failed, out)
	}
	gets := l.Requests()
	for _, r := range gets {
		if strings.Contains(r, "resourceVersion=0") {
			t.Errorf("a list was made: %s", r)
		}
	}
	if len(gets) > 6 {
		t.Errorf("%d requests: %v", len(gets), gets)
	}
}

func TestWhoseAnswerItIs(t *testing.T) {
	for name, c := range map[string]struct {
		nodes         int
		said, renewed time.Duration
		args          []string
		theirs        bool
	}{
		"a small cluster":          {2, time.Second, time.Second, nil, false},
		"asked for":                {2, time.Second, time.Second, []string{"--source=scheduler"}, true},
		"asked for, by kind":       {2, time.Second, time.Second, []string{"--source=scheduler", "-q"}, true},
		"refused":                  {largeCluster, time.Second, time.Second, []string{"--source=cluster"}, false},
		"nodes are wanted":         {largeCluster, time.Second, time.Second, []string{"-v"}, false},
		"an old answer":            {largeCluster, 41 * time.Minute, time.Second, nil, false},
		"a scheduler that is gone": {largeCluster, time.Second, time.Minute, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, _ := publish(t, c.nodes, c.said, c.renewed).ask(t.Context(), append([]string{"tfjob/llama"}, c.args...)...)
			if strings.HasPrefix(out, theirs) != c.theirs || out == "" {
				t.Errorf("got\n%s", out)
			}
		})
	}
}

// Whoever may read his own namespace only does not see the scheduler's lease.
func TestWhoMayNotSeeTheLease(t *testing.T) {
	forbidden := map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no"}
	for name, c := range map[string]struct {
		said   time.Duration
		args   []string
		theirs bool
		note   string
	}{
		"insists":                   {30 * time.Minute, []string{"--source=scheduler"}, true, "no right to get lease gang-scheduler in namespace gangctl-system"},
		"does not, and it is fresh": {30 * time.Second, nil, true, "found this out 30s ago"},
		"does not, and it is old":   {30 * time.Minute, nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := publishOnly(t, largeCluster, c.said, time.Second)
			l.Answer(getLease, 403, forbidden)
			out, _, _ := l.ask(t.Context(), append([]string{"tfjob/llama"}, c.args...)...)
			if strings.HasPrefix(out, theirs) != c.theirs || !strings.Contains(out, c.note) || out == "" {
				t.Errorf("got\n%s", out)
			}
		})
	}
}

func TestTheSchedulersWordMayBeMissing(t *testing.T) {
	for name, c := range map[string]struct {
		cluster *cluster
		args    []string
		want    string
	}{
		"nothing was published": {serve(t, busy()), []string{"llama"}, "0 jobs are called llama"},
		"it is too old":         {publish(t, 2, time.Hour, time.Second), []string{"llama"}, "is 60m old"},
		"the scheduler is gone": {publish(t, 2, time.Second, time.Minute), []string{"llama"}, "does not renew lease gangctl-system/gang-scheduler"},
		"it is about a pod":     {publish(t, 2, time.Second, time.Second), []string{"pod/llama-worker-0"}, "not for a pod"},
		"without a name":        {publish(t, 2, time.Second, time.Second), nil, "needs the name of a job"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, failed := c.cluster.ask(t.Context(), append(c.args, "--source=scheduler")...)
			if failed == nil || !strings.Contains(failed.Error(), c.want) || failed.Hint == "" {
				t.Errorf("got %+v, want %s", failed, c.want)
			}
		})
	}
	_, _, failed := serve(t, busy()).ask(t.Context(), "llama", "--source=heaven")
	if failed == nil || !strings.Contains(failed.Error(), "must be auto, cluster or scheduler") {
		t.Errorf("got %v", failed)
	}
}
