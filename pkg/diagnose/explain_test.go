package diagnose

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

func TestAbsent(t *testing.T) {
	if a := absentAnswer(t); a.Primary.Code != answer.CRDNotInstalled || a.Exit != answer.ExitAdmin {
		t.Errorf("got %s exit %d", a.Primary.Code, a.Exit)
	}
	c := clustertest.New()
	c.S.Denied = []snapshot.Denial{{Resource: "tfjobs.kubeflow.org"}}
	a, err := Explain(context.Background(), c.Done(), Query{Kind: "tfjob", Namespace: "team", Name: "gang"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Primary.Code != answer.NoPermission || a.Exit != answer.ExitUnknown {
		t.Errorf("got %s exit %d", a.Primary.Code, a.Exit)
	}
}

// cronJob adds a CronJob, as files have it.
func cronJob(c *clustertest.Cluster, suspended bool) {
	c.Object(map[string]any{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": map[string]any{"namespace": "team", "name": "trn", "uid": "c"}, "spec": map[string]any{"suspend": suspended, "concurrencyPolicy": "Forbid"},
		"status": map[string]any{"lastScheduleTime": "2026-11-21T02:00:00Z"}})
}

// What has the name and is no job is named, and so is a job of another kind: no kind of job is missing then.
func TestNotAJob(t *testing.T) {
	yes := true
	for name, tt := range map[string]struct {
		kind  string
		build func(*clustertest.Cluster)
		want  string
	}{
		"a Deployment": {build: func(c *clustertest.Cluster) { c.Deployment("team", "trn", "serve:v1") }, want: "Deployment"},
		"a CronJob": {build: func(c *clustertest.Cluster) {
			c.Put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "trn-29394720", OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "trn", UID: "c", Controller: &yes}}}})
		}, want: "CronJob of this name, which has made Job trn-29394720"},
		"a CronJob that waits for its Job": {build: func(c *clustertest.Cluster) {
			cronJob(c, false)
			for _, name := range []string{"trn-1", "trn-2"} {
				j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "trn", UID: "c", Controller: &yes}}}}
				if name == "trn-1" {
					j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
				}
				c.Put(j)
			}
		}, want: "there is a CronJob of this name, which has made Job trn-2, trn-1; its last was due at 2026-11-21 02:00:00Z; it makes none while trn-2 has not ended (concurrencyPolicy Forbid)"},
		"a CronJob that is suspended": {build: func(c *clustertest.Cluster) { cronJob(c, true) }, want: "there is a CronJob of this name; its last was due at 2026-11-21 02:00:00Z; it is suspended, and makes none"},
		"an application of another kind": {build: func(c *clustertest.Cluster) {
			c.Object(map[string]any{"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": map[string]any{"namespace": "team", "name": "trn", "uid": "s"}})
			for i, name := range []string{"trn-driver", "trn-exec-1"} {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "sparkoperator.k8s.io/v1beta2", Kind: "SparkApplication", Name: "trn", UID: "s", Controller: &yes}}}}
				p.Spec.NodeName = []string{"n1", ""}[i]
				c.Put(p)
			}
		}, want: "SparkApplication of this name: give the name of one of its pods, as pod/trn-exec-1"},
		"an application of a kind that is not collected": {build: func(c *clustertest.Cluster) {
			c.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "trn-head", OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Trainer", Name: "trn", UID: "t", Controller: &yes}}}})
		}, want: "there is a Trainer of this name: give the name of one of its pods, as pod/trn-head"},
		"what makes jobs": {build: func(c *clustertest.Cluster) {
			of := []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayService", Name: "trn", UID: "s", Controller: &yes}}
			c.Object(map[string]any{"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": map[string]any{"namespace": "team", "name": "trn", "uid": "s"}})
			c.Add(clustertest.Gang{Name: "trn-a", Kind: "RayCluster", Workers: 1, NoGroup: true, Nodes: []string{"n1"}})
			c.Add(clustertest.Gang{Name: "trn-b", Kind: "RayCluster", Workers: 1, NoGroup: true})
			for _, u := range c.S.Custom[schema.GroupKind{Group: "ray.io", Kind: "RayCluster"}] {
				u.SetOwnerReferences(of)
			}
			c.S.Server.Resources = nil
		}, want: "there is a RayService of this name, which has made raycluster/trn-a, raycluster/trn-b"},
		"a StatefulSet whose pods are refused": {build: func(c *clustertest.Cluster) {
			c.Put(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "trn"}})
			c.Event("StatefulSet", "team", "trn", "statefulset-controller", "FailedCreate", "forbidden", time.Minute)
		}, want: "which has no pods; statefulset-controller reported of it: FailedCreate: forbidden"},
		"a queue, which is none": {build: func(c *clustertest.Cluster) {
			c.Put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "x"}})
			c.LocalQueue("trn", "cq").SetNamespace("team")
			c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": map[string]any{"namespace": "team", "name": "trn"}})
			c.Object(map[string]any{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "metadata": map[string]any{"namespace": "team", "name": "trn"}})
		}},
		"a cluster of Jobs": {build: func(c *clustertest.Cluster) {
			c.Put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "x"}})
		}},
		"a job of another kind": {kind: "mpijob", build: func(c *clustertest.Cluster) {
			c.Add(clustertest.Gang{Name: "trn", Workers: 1})
			c.S.Server.Resources = nil
		}, want: "tfjob/trn"},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New().Nodes(2, 8)
			c.S.Server.Resources = []string{"jobs.batch/v1"}
			tt.build(c)
			_, err := Explain(context.Background(), c.Done(), Query{Kind: tt.kind, Namespace: "team", Name: "trn"}, Options{})
			var missing *gang.JobNotFoundError
			if !errors.As(err, &missing) || !strings.Contains(strings.Join(slices.Concat(missing.Instead, missing.Nearest), " "), tt.want) {
				t.Errorf("got %v %+v", err, missing)
			}
			if tt.want == "" && missing != nil && len(missing.Instead) > 0 {
				t.Errorf("got %q", missing.Instead)
			}
		})
	}
}

func TestNotFound(t *testing.T) {
	c := clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Name: "resnet", Workers: 1}).Add(clustertest.Gang{Namespace: "other", Name: "llama", Workers: 1})
	s := c.Done()
	for _, tt := range []struct{ name, nearest, elsewhere string }{{"resnt", "resnet", ""}, {"llama", "", "other"}, {"zzz", "", ""}} {
		_, err := Explain(context.Background(), s, Query{Namespace: "team", Name: tt.name}, Options{})
		var missing *gang.JobNotFoundError
		if !errors.As(err, &missing) {
			t.Fatalf("%s: got %v", tt.name, err)
		}
		first := func(list []string) string {
			if len(list) == 0 {
				return ""
			}
			return list[0]
		}
		if first(missing.Nearest) != tt.nearest || first(missing.Elsewhere) != tt.elsewhere {
			t.Errorf("%s: near %v, elsewhere %v", tt.name, missing.Nearest, missing.Elsewhere)
		}
	}
}

func TestByPod(t *testing.T) {
	c := clustertest.New().Nodes(1, 8).Add(waiting(2, 8))
	a, err := Explain(context.Background(), c.Done(), Query{Kind: "pod", Namespace: "team", Name: "gang-worker-1"}, Options{NoAdvice: true})
	if err != nil {
		t.Fatal(err)
	}
	if a.Job.Kind != "TFJob" || a.Job.Name != "gang" || a.Primary.Code != answer.TooBig {
		t.Errorf("got %+v %v", a.Job, a.Primary)
	}
}

// A pod without a job stands for the gang that it names.
func TestBareGang(t *testing.T) {
	c := clustertest.New().Nodes(1, 8).Add(waiting(2, 8))
	c.S.Custom = nil
	group := map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"name": "gang", "namespace": "team", "uid": "g"}, "spec": map[string]any{"minMember": int64(2)}}
	c.Object(group)
	for _, p := range c.S.Pods {
		p.OwnerReferences = nil
	}
	a, err := Explain(context.Background(), c.Done(), Query{Kind: "pod", Namespace: "team", Name: "gang-worker-0"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Gang.MinMember != 2 || a.Primary.Code != answer.TooBig {
		t.Errorf("got %+v %v", a.Gang, a.Primary)
	}
}

func TestAmbiguous(t *testing.T) {
	c := clustertest.New().Add(waiting(1, 1))
	c.Object(map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": map[string]any{"name": "gang", "namespace": "team", "uid": "p"}, "spec": map[string]any{"pytorchReplicaSpecs": map[string]any{}}})
	_, err := Explain(context.Background(), c.Done(), Query{Namespace: "team", Name: "gang"}, Options{})
	var several *gang.AmbiguousJobError
	if !errors.As(err, &several) || len(several.Choices()) != 2 || several.Choices()[1] != "tfjob/gang" {
		t.Errorf("got %v", err)
	}
}

func TestPending(t *testing.T) {
	c := clustertest.New().Nodes(2, 8).Runs("a", 8, "n1").Add(waiting(2, 8)).Add(clustertest.Gang{Namespace: "other", Name: "x", Workers: 9, GPUs: 8})
	s := c.Done()
	if all := NewExplainer(s).Pending(context.Background(), "", Options{}); len(all) != 2 || all[0].Job.Name != "x" || all[1].Primary.Code != answer.NodesBusy {
		t.Errorf("got %d answers", len(all))
	}
	if all := NewExplainer(s).Pending(context.Background(), "team", Options{}); len(all) != 1 || len(all[0].Unblock) != 0 {
		t.Errorf("got %d answers", len(all))
	}
}

// The gang of pods that no job made is answered for, too, once.
func TestPendingWithoutAJob(t *testing.T) {
	s := clustertest.New().Nodes(2, 8).Runs("a", 8, "n1").Add(waiting(2, 8)).Done()
	for kind := range s.Custom {
		if kind.Kind == "TFJob" {
			s.Custom[kind] = nil
		}
	}
	for _, pod := range s.Pods {
		pod.OwnerReferences = nil
	}
	all := NewExplainer(s).Pending(context.Background(), "team", Options{})
	if len(all) != 1 || all[0].Job.Name != "gang" || all[0].Primary.Code != answer.NodesBusy {
		t.Errorf("got %d answers: %+v", len(all), all)
	}
	if all := NewExplainer(s).Pending(context.Background(), "other", Options{}); len(all) != 0 {
		t.Errorf("got %d answers of another namespace", len(all))
	}
}

// Without nodes an answer is the same but for them.
func TestPendingWithoutNodes(t *testing.T) {
	s := clustertest.New().Nodes(2, 8).Runs("a", 8, "n1").Add(waiting(2, 8)).Done()
	whole, brief := NewExplainer(s).Pending(context.Background(), "", Options{}), NewExplainer(s).Pending(context.Background(), "", Options{Nodes: NoNodes})
	if len(whole) != 1 || len(brief) != 1 || whole[0].Nodes == nil || brief[0].Nodes != nil {
		t.Fatalf("got %d and %d answers", len(whole), len(brief))
	}
	whole[0].Nodes = nil
	want, err := json.Marshal(whole[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(brief[0]); err != nil || string(got) != string(want) {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

// unsubmitted is a job of two workers with 8 GPUs that is not there yet.
func unsubmitted() *unstructured.Unstructured {
	submitted := clustertest.New().Add(with(waiting(2, 8), none))
	job := submitted.S.Custom[view.New(submitted.Done()).Jobs()[0].Kind.GroupKind()][0]
	unstructured.RemoveNestedField(job.Object, "status")
	return job
}

// A job of a version that is not served cannot be submitted, whatever else is served of its kind.
func TestDryRunOfAnotherVersion(t *testing.T) {
	job := unsubmitted()
	job.SetAPIVersion("kubeflow.org/v2")
	trial, err := DryRun(context.Background(), clustertest.New().Nodes(2, 8).Done(), job, "team", Options{})
	if err != nil || trial.Primary == nil || trial.Primary.Code != answer.CRDNotInstalled || trial.Headline != job.GetName()+": this cluster serves tfjobs.kubeflow.org as v1, and not as v2" {
		t.Errorf("got %+v, %v", trial.Answer, err)
	}
}

// A dry run is the same answer for a job that is not there yet, and exits with 0 where it would start.
func TestDryRun(t *testing.T) {
	job := unsubmitted()
	for _, tt := range []struct {
		nodes, exit int
		code        answer.Code
	}{{2, 0, answer.Fits}, {1, 6, answer.TooBig}} {
		s := clustertest.New().Nodes(tt.nodes, 8).Done()
		before := len(s.Custom)
		a, err := DryRun(context.Background(), s, job, "team", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if a.Exit != tt.exit || a.Primary.Code != tt.code || len(s.Custom) != before {
			t.Errorf("%d nodes: got %s exit %d", tt.nodes, a.Primary.Code, a.Exit)
		}
	}
}
