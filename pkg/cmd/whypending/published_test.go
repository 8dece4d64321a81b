package whypending

import (
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// publish is a busy cluster of so many nodes, whose scheduler has published why
// llama waits, and renewed its lease, so long ago.
func publish(t *testing.T, nodes int, publishedAgo, renewed time.Duration) *cluster {
	t.Helper()
	l, lease := publishOnly(t, nodes, publishedAgo, renewed)
	l.Answer(getLease, 200, lease)
	return l
}

const getLease = "GET /apis/coordination.k8s.io/v1/namespaces/gangctl-system/leases/gang-scheduler"

const getKey = "GET /api/v1/namespaces/gangctl-system/configmaps/gang-scheduler-answers"

var signingKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// publishOnly leaves it to the caller to serve the lease.
func publishOnly(t *testing.T, nodes int, publishedAgo, renewed time.Duration) (*cluster, *coordinationv1.Lease) {
	t.Helper()
	return publishSigned(t, nodes, publishedAgo, renewed, signingKey)
}

// publishSigned is publishOnly by a user whose key is not the scheduler's.
func publishSigned(t *testing.T, nodes int, publishedAgo, renewed time.Duration, key ed25519.PrivateKey) (*cluster, *coordinationv1.Lease) {
	t.Helper()
	return publishFor(t, nodes, publishedAgo, renewed, key, 0, 0)
}

// publishAbout is publishOnly by a scheduler that saw one generation of a job that has another now.
func publishAbout(t *testing.T, seen, now int64) (*cluster, *coordinationv1.Lease) {
	t.Helper()
	return publishFor(t, largeCluster, time.Second, time.Second, signingKey, seen, now)
}

func publishFor(t *testing.T, nodes int, publishedAgo, renewed time.Duration, key ed25519.PrivateKey, seen, now int64) (*cluster, *coordinationv1.Lease) {
	t.Helper()
	s := busy().Done()
	for _, jobs := range s.Custom {
		for _, job := range jobs {
			job.SetGeneration(seen)
		}
	}
	a, err := diagnose.Explain(t.Context(), s, diagnose.Query{Namespace: "team", Name: "llama"}, diagnose.Options{NoAdvice: true})
	if err != nil {
		t.Fatal(err)
	}
	a.Job.UID = "u1"
	a.Headline, a.Nodes.Total = "as the scheduler sees it", nodes
	a.Unblock = []answer.Action{{Number: 1, Kind: answer.Quota, Text: "raise a quota"}, {Number: 2, Kind: answer.Fewer, Text: "1 worker instead of 2", Resize: "gangctl resize llama --workers 1 -n team"}}
	at := clustertest.Now.Add(-publishedAgo)
	a.Snapshot.At = &at
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: published.EventName(types.UID(a.Job.UID))}}
	if err := published.Put(event, a, key); err != nil {
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
		"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"namespace": "team", "name": "llama", "uid": a.Job.UID, "generation": now},
	})
	l.Answer("GET /api/v1/namespaces/team/events/"+event.Name, 200, event)
	public, _ := signingKey.Public().(ed25519.PublicKey)
	l.Answer(getKey, 200, &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{published.PublicKeyField: published.EncodePublicKey(public)},
	})
	return l, lease
}

const theirs = "WAITING  as the scheduler sees it"

// The ways that gangctl can do are completed without a look at the cluster itself.
func TestCompleteWays(t *testing.T) {
	l := publish(t, largeCluster, time.Second, time.Second)
	io, _, _, _ := iostreams.Test(l.clock)
	f := &cmdutil.Factory{IO: io, Namespace: func() (string, error) { return "team", nil }, Client: l.Client}
	for name, want := range map[string]string{"llama": "2\t1 worker instead of 2", "lama": "", "": ""} {
		cmd := NewCommand(f, nil)
		cmd.SetContext(t.Context())
		var args []string
		if name != "" {
			args = []string{name}
		}
		if found, _ := CompleteWays(f)(cmd, args, ""); strings.Join(found, "\n") != want {
			t.Errorf("%q: got %q", name, found)
		}
	}
}

func TestALargeClusterIsNotReadWhereTheSchedulerHasAnswered(t *testing.T) {
	l := publish(t, largeCluster, 90*time.Second, time.Second)
	out, _, failed := l.query(t.Context(), "llama")
	if failed == nil || failed.Code != answer.ExitWaiting || !strings.HasPrefix(out, theirs) || !strings.Contains(out, "gang-scheduler found this out 90s ago; --source=cluster looks") {
		t.Errorf("%v\n%s", failed, out)
	}
	gets := l.Requests()
	for _, r := range gets {
		if strings.Contains(r, "resourceVersion=0") {
			t.Errorf("a list was made: %s", r)
		}
	}
	most := 3 // for the answer, and one a kind and version of jobs
	for _, r := range kind.Readers() {
		most += len(r.Versions)
	}
	if len(gets) > most {
		t.Errorf("%d requests: %v", len(gets), gets)
	}
}

func TestWhoseAnswerItIs(t *testing.T) {
	for name, c := range map[string]struct {
		nodes                 int
		publishedAgo, renewed time.Duration
		args                  []string
		theirs                bool
	}{
		"a small cluster":          {2, time.Second, time.Second, nil, false},
		"requested":                {2, time.Second, time.Second, []string{"--source=scheduler"}, true},
		"requested, by kind":       {2, time.Second, time.Second, []string{"--source=scheduler", "-q"}, true},
		"refused":                  {largeCluster, time.Second, time.Second, []string{"--source=cluster"}, false},
		"nodes are wanted":         {largeCluster, time.Second, time.Second, []string{"-v"}, false},
		"an old answer":            {largeCluster, 41 * time.Minute, time.Second, nil, false},
		"a scheduler that is gone": {largeCluster, time.Second, time.Minute, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, _ := publish(t, c.nodes, c.publishedAgo, c.renewed).query(t.Context(), append([]string{"tfjob/llama"}, c.args...)...)
			if strings.HasPrefix(out, theirs) != c.theirs || out == "" {
				t.Errorf("got\n%s", out)
			}
		})
	}
}

// Who may not list nodes cannot be answered from the cluster, of any size: the scheduler's answer is there.
func TestTheSchedulersAnswerWithoutRights(t *testing.T) {
	blind := func(t *testing.T) *cluster {
		t.Helper()
		l := publish(t, 2, 20*time.Minute, time.Second)
		s := busy().Done()
		for _, objects := range s.Custom {
			for _, object := range objects {
				if owners := object.GetOwnerReferences(); len(owners) > 0 && owners[0].Name == "llama" { // the PodGroup
					owners[0].UID = "u1"
					object.SetOwnerReferences(owners)
				} else if object.GetName() == "llama" {
					object.SetUID("u1")
				}
			}
		}
		for _, pod := range s.Pods {
			if strings.HasPrefix(pod.Name, "llama") {
				pod.OwnerReferences[0].UID = "u1"
			}
		}
		l.Set(s)
		l.Deny("ed", "/api/v1/nodes")
		return l
	}
	out, _, failed := blind(t).query(t.Context(), "llama")
	if failed == nil || failed.Code != answer.ExitWaiting || !strings.HasPrefix(out, theirs) ||
		!strings.Contains(out, "gang-scheduler found this out 20m ago; you may not see all that it depends on, and --source=cluster names what") {
		t.Errorf("%v\n%s", failed, out)
	}
	if out, _, failed = blind(t).query(t.Context()); failed == nil || failed.Code != answer.ExitWaiting || !strings.Contains(out, "as the scheduler sees it") {
		t.Errorf("without a name: %v\n%s", failed, out)
	}
	l := blind(t)
	if out, _, failed = l.query(t.Context(), "llama", "--source=cluster"); failed == nil || failed.Code != answer.ExitUnknown || !strings.HasPrefix(out, "UNKNOWN") {
		t.Errorf("the cluster itself: %v\n%s", failed, out)
	}
	client, err := l.Client()
	if err != nil {
		t.Fatal(err)
	}
	job, err := jobs.Find(t.Context(), client, "team", "llama")
	if err != nil {
		t.Fatal(err)
	}
	if a, err := cmdutil.WhyPending(t.Context(), client, l.clock.Now, job); err != nil || a.Headline != "as the scheduler sees it" {
		t.Errorf("of other commands: %v, %v", a, err)
	}
}

// Whoever may write events writes an answer that looks like the scheduler's.
func TestAForgedAnswerIsNotPrinted(t *testing.T) {
	l, lease := publishSigned(t, largeCluster, time.Second, time.Second, ed25519.NewKeyFromSeed([]byte(strings.Repeat("x", ed25519.SeedSize))))
	l.Answer(getLease, 200, lease)
	if out, _, _ := l.query(t.Context(), "llama"); out == "" || strings.HasPrefix(out, theirs) {
		t.Errorf("got\n%s", out)
	}
	out, stderr, failed := l.query(t.Context(), "llama", "--source=scheduler")
	if failed == nil || strings.HasPrefix(out, theirs) || !strings.Contains(failed.Error()+stderr, "not signed by the scheduler") {
		t.Errorf("%v\n%s%s", failed, out, stderr)
	}
}

// Whoever may write events puts an answer back that the scheduler signed for the job as it was.
func TestAnAnswerAboutAnEarlierSpecIsNotPrinted(t *testing.T) {
	for name, c := range map[string]struct {
		signed, now int64
		theirs      bool
	}{
		"the same":              {2, 2, true},
		"changed since":         {1, 2, false},
		"without generations":   {0, 0, true},
		"of an older scheduler": {0, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, lease := publishAbout(t, c.signed, c.now)
			l.Answer(getLease, 200, lease)
			if out, _, _ := l.query(t.Context(), "llama"); out == "" || strings.HasPrefix(out, theirs) != c.theirs {
				t.Errorf("got\n%s", out)
			}
			out, stderr, failed := l.query(t.Context(), "llama", "--source=scheduler")
			if failed == nil || strings.HasPrefix(out, theirs) != c.theirs || !c.theirs && !strings.Contains(failed.Error()+stderr, "before its spec was changed") {
				t.Errorf("%v\n%s%s", failed, out, stderr)
			}
		})
	}
}

// Who wrote an answer is looked up only where there is one: it was taken back, or could not be signed.
func TestWithoutAnAnswerNoKeyIsRead(t *testing.T) {
	l, lease := publishSigned(t, largeCluster, time.Second, time.Second, nil)
	l.Answer(getLease, 200, lease)
	if out, _, _ := l.query(t.Context(), "llama"); out == "" || strings.HasPrefix(out, theirs) {
		t.Errorf("got\n%s", out)
	}
	if requests := l.Requests(); slices.Contains(requests, getKey) {
		t.Errorf("requests: %v", requests)
	}
}

// Whoever may read his own namespace only does not see the scheduler's lease.
func TestWhoMayNotSeeTheLease(t *testing.T) {
	forbidden := map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no"}
	for name, c := range map[string]struct {
		publishedAgo time.Duration
		args         []string
		theirs       bool
		note         string
	}{
		"insists":                   {30 * time.Minute, []string{"--source=scheduler"}, true, "no right to get lease gang-scheduler in namespace gangctl-system"},
		"does not, and it is fresh": {30 * time.Second, nil, true, "found this out 30s ago"},
		"does not, and it is old":   {30 * time.Minute, nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := publishOnly(t, largeCluster, c.publishedAgo, time.Second)
			l.Answer(getLease, 403, forbidden)
			out, _, _ := l.query(t.Context(), append([]string{"tfjob/llama"}, c.args...)...)
			if strings.HasPrefix(out, theirs) != c.theirs || !strings.Contains(out, c.note) || out == "" {
				t.Errorf("got\n%s", out)
			}
		})
	}
}

func TestTheSchedulersMessageMayBeMissing(t *testing.T) {
	for name, c := range map[string]struct {
		cluster *cluster
		args    []string
		want    string
	}{
		"nothing was published": {serve(t, busy()), []string{"llama"}, "get job team/llama: not found"},
		"it is too old":         {publish(t, 2, time.Hour, time.Second), []string{"llama"}, "is 60m old"},
		"the scheduler is gone": {publish(t, 2, time.Second, time.Minute), []string{"llama"}, "does not renew lease gangctl-system/gang-scheduler"},
		"it is about a pod":     {publish(t, 2, time.Second, time.Second), []string{"pod/llama-worker-0"}, "not for a pod"},
		"without a name":        {publish(t, 2, time.Second, time.Second), nil, "needs the name of a job"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, failed := c.cluster.query(t.Context(), append(c.args, "--source=scheduler")...)
			if failed == nil || !strings.Contains(failed.Error(), c.want) || failed.Hint == "" {
				t.Errorf("got %+v, want %s", failed, c.want)
			}
		})
	}
	_, _, failed := serve(t, busy()).query(t.Context(), "llama", "--source=heaven")
	if failed == nil || !strings.Contains(failed.Error(), "must be one of auto, cluster, scheduler") {
		t.Errorf("got %v", failed)
	}
}
