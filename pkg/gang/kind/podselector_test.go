package kind_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// A printed command selects the pods of a job by the label that its controller writes, in the release that made them.
func TestPodSelector(t *testing.T) {
	for _, c := range []struct {
		name, kind, madeAs string
		labels             []string // of its pods, one each
		want               string
		found              bool
	}{
		{"no pod yet", "TFJob", "", nil, "training.kubeflow.org/job-name=llama", false},
		{"a pod without labels", "TFJob", "", []string{"app"}, "training.kubeflow.org/job-name=llama", false},
		{"Training Operator", "PyTorchJob", "", []string{"training.kubeflow.org/job-name"}, "training.kubeflow.org/job-name=llama", true},
		{"Training Operator 1.3", "MPIJob", "", []string{"job-name"}, "job-name=llama", true},
		{"TFJob operator", "TFJob", "", []string{"tf-job-name"}, "tf-job-name=llama", true},
		{"PyTorch operator", "PyTorchJob", "", []string{"pytorch-job-name"}, "pytorch-job-name=llama", true},
		{"MPI Operator", "MPIJob", "", []string{"mpi_job_name"}, "mpi_job_name=llama", true},
		{"the label of another kind's operator", "MPIJob", "", []string{"tf-job-name"}, "training.kubeflow.org/job-name=llama", false},
		{"two releases", "TFJob", "", []string{"training.kubeflow.org/job-name", "job-name", "training.kubeflow.org/job-name"}, "job-name=llama", true},
		{"JAXJob", "JAXJob", "", []string{"training.kubeflow.org/job-name"}, "training.kubeflow.org/job-name=llama", true},
		{"Job of Volcano", "Volcano Job", "", []string{"volcano.sh/job-name"}, "volcano.sh/job-name=llama", true},
		{"Job", "Job", "", []string{"job-name"}, "job-name=llama", true},
		{"JobSet", "JobSet", "", []string{"jobset.sigs.k8s.io/jobset-name"}, "jobset.sigs.k8s.io/jobset-name=llama", true},
		{"TrainJob", "TrainJob", "llama", []string{"jobset.sigs.k8s.io/jobset-name"}, "jobset.sigs.k8s.io/jobset-name=llama", true},
		{"LeaderWorkerSet", "LeaderWorkerSet", "", nil, "leaderworkerset.sigs.k8s.io/name=llama", false},
		{"RayJob", "RayJob", "llama-x7k2p", nil, "ray.io/cluster=llama-x7k2p", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := slices.IndexFunc(kind.Readers(), func(r gang.JobReader) bool { return r.Title() == c.kind })
			if i < 0 {
				t.Fatalf("no kind %s", c.kind)
			}
			reader := kind.Readers()[i]
			job := &gang.Job{Reader: reader, Meta: metav1.ObjectMeta{Namespace: "team", Name: "llama", UID: "u"}, MadeAs: c.madeAs}
			var pods []*corev1.Pod
			for _, label := range c.labels {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Labels: map[string]string{label: "llama"}}}
				yes := true
				p.OwnerReferences = []metav1.OwnerReference{{UID: "u", Controller: &yes}}
				pods = append(pods, p)
			}
			if _, found := job.NameLabel(pods); found != c.found {
				t.Errorf("found %t", found)
			}
			if got := job.PodSelector(pods); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	t.Run("another job's pod", func(t *testing.T) {
		reader, _ := kind.ByName("tfjob")
		job := &gang.Job{Reader: reader, Meta: metav1.ObjectMeta{Namespace: "team", Name: "llama", UID: "u"}}
		if got := job.PodSelector([]*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Labels: map[string]string{"tf-job-name": "llama"}}}}); got != "training.kubeflow.org/job-name=llama" {
			t.Errorf("got %s", got)
		}
	})
}
