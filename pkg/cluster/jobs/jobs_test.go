package jobs

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

const (
	kubeflowPath = "/apis/kubeflow.org/v1/namespaces/research/"
	batchPath    = "/apis/batch/v1/namespaces/research/jobs"
	podsPath     = "/api/v1/namespaces/research/pods"
)

// of is a job of an operator with two workers; version and kind are its own.
func of(version, kind, name string) map[string]any {
	specs := map[string]string{"TFJob": "tfReplicaSpecs", "PyTorchJob": "pytorchReplicaSpecs", "MPIJob": "mpiReplicaSpecs"}[kind]
	return map[string]any{
		"apiVersion": "kubeflow.org/" + version, "kind": kind,
		"metadata": map[string]any{"namespace": "research", "name": name, "uid": kind + "-" + name},
		"spec": map[string]any{specs: map[string]any{"Worker": map[string]any{"replicas": 2, "template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": strings.ToLower(strings.TrimSuffix(kind, "Job"))}}}}}}},
		"status": map[string]any{"startTime": "2026-01-02T03:04:05Z"},
	}
}

// batch is a Job of Kubernetes itself; labelled reports whether its pods have a group reference.
func batch(name string, labelled bool, owner *metav1.OwnerReference) *batchv1.Job {
	two := int32(2)
	j := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name, UID: types.UID("Job-" + name)}}
	j.Spec.Parallelism, j.Spec.Completions = &two, &two
	if labelled {
		j.Spec.Template.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": name}
	}
	if owner != nil {
		j.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return j
}

func listOf(kind string, items ...any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": kind + "List", "metadata": map[string]any{}, "items": append([]any{}, items...)}
}

func notFound(s *kubetest.Server, paths ...string) {
	for _, path := range paths {
		s.Refuse("GET "+path, 404, metav1.StatusReasonNotFound, "not found", &metav1.StatusDetails{Name: "llama"})
	}
}

func forbid(s *kubetest.Server, paths ...string) {
	for _, path := range paths {
		s.Refuse("GET "+path, 403, metav1.StatusReasonForbidden, `User "bob" cannot get resource`, nil)
	}
}

// A name is enough, whatever the kind, whoever made it, and whatever else the cluster serves.
func TestFind(t *testing.T) {
	tests := map[string]struct {
		arg     string
		serve   func(*kubetest.Server)
		want    string
		message string
		code    failure.Code
	}{
		"a PyTorchJob": {"llama", func(s *kubetest.Server) {
			notFound(s, kubeflowPath+"tfjobs/llama")
			s.Answer("GET "+kubeflowPath+"pytorchjobs/llama", 200, of("v1", "PyTorchJob", "llama"))
		}, "pytorchjob.kubeflow.org/llama", "", 0},
		"an MPIJob of the MPI Operator": {"llama", func(s *kubetest.Server) {
			s.Answer("GET /apis/kubeflow.org/v2beta1/namespaces/research/mpijobs/llama", 200, of("v2beta1", "MPIJob", "llama"))
		}, "mpijob.kubeflow.org/llama", "", 0},
		"a Job that is a gang": {"llama", func(s *kubetest.Server) { s.Answer("GET "+batchPath+"/llama", 200, batch("llama", true, nil)) }, "job.batch/llama", "", 0},
		"a Job that was submitted without a gang": {"llama", func(s *kubetest.Server) {
			job := batch("llama", false, nil)
			job.Annotations = map[string]string{provenance.CommandAnnotation: "gangctl submit job llama --dialect none"}
			s.Answer("GET "+batchPath+"/llama", 200, job)
		}, "job.batch/llama", "", 0},
		"a Job that is none": {"llama", func(s *kubetest.Server) {
			s.Answer("GET "+batchPath+"/llama", 200, batch("llama", false, nil))
			notFound(s, kubeflowPath+"tfjobs/llama")
		}, "", "get job research/llama: not found", 1},
		"of two kinds":            {"llama", both, "", "research/llama is the name of several jobs: TFJob, PyTorchJob", 1},
		"of two kinds, one named": {"pytorch/llama", both, "pytorchjob.kubeflow.org/llama", "", 0},
		"as it is printed":        {"pytorchjob.kubeflow.org/llama", both, "pytorchjob.kubeflow.org/llama", "", 0},
		"a Job as it is printed":  {"job.batch/llama", func(s *kubetest.Server) { s.Answer("GET "+batchPath+"/llama", 200, batch("llama", true, nil)) }, "job.batch/llama", "", 0},
		"of another group":        {"pytorchjob.example.com/llama", both, "", `pytorchjob.example.com/llama: gangctl knows no kind of job "pytorchjob.example.com"`, 2},
		"job/ is any kind": {"job/llama", func(s *kubetest.Server) {
			s.Answer("GET "+kubeflowPath+"tfjobs/llama", 200, of("v1", "TFJob", "llama"))
		}, "tfjob.kubeflow.org/llama", "", 0},
		"no kind": {"deploy/llama", func(*kubetest.Server) {}, "", `deploy/llama: gangctl knows no kind of job "deploy"`, 2},
		"rights for one kind only": {"llama", func(s *kubetest.Server) {
			s.Answer("GET "+kubeflowPath+"tfjobs/llama", 200, of("v1", "TFJob", "llama"))
			forbid(s, kubeflowPath+"pytorchjobs/llama", kubeflowPath+"mpijobs/llama", batchPath+"/llama")
		}, "tfjob.kubeflow.org/llama", "", 0},
		"not where one may look": {"llama", func(s *kubetest.Server) {
			notFound(s, kubeflowPath+"tfjobs/llama")
			forbid(s, kubeflowPath+"pytorchjobs/llama", batchPath+"/llama")
		}, "", "get job research/llama: not found; you may not look for it among PyTorchJobs, Jobs", 1},
		"no rights at all": {"llama", func(s *kubetest.Server) {
			forbid(s, kubeflowPath+"tfjobs/llama", kubeflowPath+"pytorchjobs/llama", kubeflowPath+"mpijobs/llama", batchPath+"/llama")
		}, "", `get TFJob research/llama: User "bob" cannot get resource`, 1},
		"no operator": {"llama", func(s *kubetest.Server) { notFound(s, batchPath+"/llama") }, "", "get TFJob research/llama: the cluster does not serve tfjobs.kubeflow.org (v1)", 1},
		"trouble": {"llama", func(s *kubetest.Server) {
			both(s)
			s.Refuse("GET "+batchPath+"/llama", 500, metav1.StatusReasonInternalError, "etcd", nil)
		}, "", "get Job research/llama: etcd", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t)
			tt.serve(s)
			client, err := s.Client()
			if err != nil {
				t.Fatal(err)
			}
			job, err := Find(t.Context(), client, "research", tt.arg)
			if tt.message != "" {
				if f := failure.From(err); f == nil || f.Message != tt.message || f.Code != tt.code {
					t.Errorf("got %v, %+v", job, f)
				}
				return
			}
			if err != nil || job.Ref() != tt.want || job.Total() != 2 {
				t.Errorf("got %+v, %v", job, err)
			}
		})
	}
}

func both(s *kubetest.Server) {
	s.Answer("GET "+kubeflowPath+"tfjobs/llama", 200, of("v1", "TFJob", "llama"))
	s.Answer("GET "+kubeflowPath+"pytorchjobs/llama", 200, of("v1", "PyTorchJob", "llama"))
}

// All kinds in one list; what is part of another job, or no gang, is not in it.
func TestList(t *testing.T) {
	s := kubetest.New(t)
	controller := true
	s.Answer("GET "+kubeflowPath+"tfjobs", 200, listOf("TFJob", of("v1", "TFJob", "b")))
	s.Answer("GET "+kubeflowPath+"pytorchjobs", 200, listOf("PyTorchJob", of("v1", "PyTorchJob", "a")))
	s.Answer("GET "+kubeflowPath+"mpijobs", 200, listOf("MPIJob", of("v1", "MPIJob", "c")))
	s.Answer("GET "+batchPath, 200, batchv1.JobList{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"}, Items: []batchv1.Job{
		*batch("d", true, nil), *batch("nightly", false, nil),
		*batch("c-launcher", true, &metav1.OwnerReference{APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob", Name: "c", Controller: &controller})}})
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	all, err := List(t.Context(), client, Selection{Namespace: "research", Objects: true})
	if err != nil || len(all.Refused) > 0 {
		t.Fatal(err, all)
	}
	var refs []string
	for _, j := range all.Jobs {
		refs = append(refs, j.Ref())
		if j.Object.GetKind() != j.Kind.Kind || j.Object.GetName() != j.Meta.Name {
			t.Errorf("%s has the object %v", j.Ref(), j.Object)
		}
	}
	if got := strings.Join(refs, " "); got != "pytorchjob.kubeflow.org/a tfjob.kubeflow.org/b mpijob.kubeflow.org/c job.batch/d" {
		t.Errorf("got %s", got)
	}
	bare, err := List(t.Context(), client, Selection{Namespace: "research"})
	if err != nil || len(bare.Jobs) != len(all.Jobs) {
		t.Fatal(err, bare)
	}
	for i, j := range bare.Jobs {
		if j.Object != nil || j.Ref() != refs[i] {
			t.Errorf("%s has an object, or is not %s", j.Ref(), refs[i])
		}
	}
}

// A job that cannot be read is reported, and the others are listed: anybody may write one.
func TestListWithUnreadableJobs(t *testing.T) {
	s := kubetest.New(t)
	broken := func(name string) map[string]any {
		job := of("v1", "TFJob", name)
		job["spec"] = map[string]any{"runPolicy": map[string]any{"suspend": "LEAK"}}
		return job
	}
	s.Answer("GET "+kubeflowPath+"tfjobs", 200, listOf("TFJob", broken("x"), of("v1", "TFJob", "b"), broken("y"), broken("z")))
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	all, err := List(t.Context(), client, Selection{Namespace: "research"})
	if err != nil || len(all.Jobs) != 1 || all.Jobs[0].Meta.Name != "b" || len(all.Refused) != 1 {
		t.Fatalf("got %+v, %v", all, err)
	}
	if got := all.Refused[0].Error(); !strings.Contains(got, "TFJob research/x: ") || !strings.HasSuffix(got, "; and 2 more TFJobs") {
		t.Errorf("got %s", got)
	}
}

// A kind that may not be listed is reported, unless it is not there.
func TestListWithoutRights(t *testing.T) {
	for served, want := range map[string]int{"tfjobs pytorchjobs": 1, "tfjobs": 0} {
		s := kubetest.New(t)
		s.Answer("GET "+kubeflowPath+"tfjobs", 200, listOf("TFJob", of("v1", "TFJob", "b")))
		forbid(s, kubeflowPath+"pytorchjobs")
		var resources []metav1.APIResource
		for _, name := range strings.Fields(served) {
			resources = append(resources, metav1.APIResource{Name: name, Namespaced: true})
		}
		s.Answer("GET /apis/kubeflow.org/v1", 200, metav1.APIResourceList{GroupVersion: "kubeflow.org/v1", APIResources: resources})
		client, err := s.Client()
		if err != nil {
			t.Fatal(err)
		}
		all, err := List(t.Context(), client, Selection{Namespace: "research", Objects: true})
		if err != nil || len(all.Jobs) != 1 || len(all.Refused) != want {
			t.Errorf("%s: got %+v, %v", served, all, err)
		}
	}
}

// pod is one of a job, with the label of some release.
func pod(name, label, job string, owner types.UID) *corev1.Pod {
	controller := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name, Labels: map[string]string{label: job},
		OwnerReferences: []metav1.OwnerReference{{Kind: "TFJob", Name: job, UID: owner, Controller: &controller}}}}
}

// Pods of every release of the operators are found; those of an older job of the name are others'.
func TestPodsOf(t *testing.T) {
	for _, label := range tfjob.Reader().NameLabels {
		s := kubetest.New(t)
		all := []*corev1.Pod{pod("llama-worker-0", label, "llama", "TFJob-llama"), pod("llama-worker-1", label, "llama", "TFJob-older")}
		servePods(s, label, all)
		client, err := s.Client()
		if err != nil {
			t.Fatal(err)
		}
		job, err := Read(kubetest.Unstructured(of("v1", "TFJob", "llama")))
		if err != nil {
			t.Fatal(err)
		}
		pods, err := PodsOf(t.Context(), client, job)
		if err != nil || len(pods) != 1 || pods[0].Name != "llama-worker-0" {
			t.Errorf("%s: got %v, %v", label, pods, err)
		}
		if got := job.PodSelector(pods); got != label+"=llama" {
			t.Errorf("%s: selector %s", label, got)
		}
		many, err := PodsOfAll(t.Context(), client, "research", []*gang.Job{job}, nil)
		if err != nil || len(many[job.Meta.UID]) != 1 {
			t.Errorf("%s: among all: %v, %v", label, many, err)
		}
	}
}

// A pod of a Job is of what the Job is a part of, and of the Job itself where that is none of our kinds.
func TestOfPodOfAJob(t *testing.T) {
	by := func(version, kind string) *metav1.OwnerReference {
		controller := true
		return &metav1.OwnerReference{APIVersion: version, Kind: kind, Name: "nightly", UID: "o", Controller: &controller}
	}
	for name, tt := range map[string]struct {
		owner   *metav1.OwnerReference
		gang    bool
		want    string
		message string
	}{
		"by itself":                       {nil, true, "job.batch/nightly-29", ""},
		"of a CronJob":                    {by("batch/v1", "CronJob"), true, "job.batch/nightly-29", ""},
		"of a kind that is not known":     {by("example.com/v1", "Sweep"), true, "job.batch/nightly-29", ""},
		"of an MPIJob":                    {by("kubeflow.org/v1", "MPIJob"), true, "mpijob.kubeflow.org/nightly", ""},
		"of a CronJob, without a gang":    {by("batch/v1", "CronJob"), false, "", "pod research/nightly-29-0-abcde is no member of a job: its owner is Job nightly-29"},
		"by itself, and without a gang":   {nil, false, "", "pod research/nightly-29-0-abcde is no member of a job: its owner is Job nightly-29"},
		"of an MPIJob, as a launcher has": {by("kubeflow.org/v1", "MPIJob"), false, "mpijob.kubeflow.org/nightly", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t)
			member := pod("nightly-29-0-abcde", "batch.kubernetes.io/job-name", "nightly-29", "Job-nightly-29")
			member.OwnerReferences[0].APIVersion, member.OwnerReferences[0].Kind = "batch/v1", "Job"
			s.Answer("GET "+podsPath+"/nightly-29-0-abcde", 200, member)
			s.Answer("GET "+batchPath+"/nightly-29", 200, batch("nightly-29", tt.gang, tt.owner))
			s.Answer("GET "+kubeflowPath+"mpijobs/nightly", 200, of("v1", "MPIJob", "nightly"))
			client, err := s.Client()
			if err != nil {
				t.Fatal(err)
			}
			job, _, err := OfPod(t.Context(), client, "research", "nightly-29-0-abcde")
			if failed := failure.From(err); failed != nil && failed.Message != tt.message || failed == nil && (tt.message != "" || job.Ref() != tt.want) {
				t.Errorf("got %v, %v", job, err)
			}
		})
	}
}

// servePods answers a selector by a label with pods, and any other with none.
func servePods(s *kubetest.Server, label string, all []*corev1.Pod) {
	s.HandleFunc("GET "+podsPath, func(w http.ResponseWriter, r *http.Request) {
		if key, _, _ := strings.Cut(r.FormValue("labelSelector"), "="); key == label {
			kubetest.Write(w, 200, kubetest.PodList(all...))
			return
		}
		kubetest.Write(w, 200, kubetest.PodList())
	})
}

func ExampleJob_String() {
	job, err := Read(kubetest.Unstructured(of("v1", "PyTorchJob", "llama")))
	fmt.Println(job, err)
	// Output: PyTorchJob research/llama <nil>
}
