package render

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/golden"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/templates"
)

// sample is a job of each kind, and how it is written.
type sample struct {
	write  func() Kind
	preset func() []byte
	spec   Spec
}

func samples() map[string]sample {
	common := func(roles ...Role) Spec {
		return spec(func(s *Spec) {
			s.Roles = roles
			s.Pod.Command = []string{"python", "train.py"}
			s.Labels, s.CommandLine = map[string]string{"team": "vision"}, "gangctl submit"
			s.Gang.MinAvailable, s.Gang.Queue = s.members(), "research"
			s.Pod.PriorityClass = "high"
		})
	}
	worker := Role{Name: "Worker", Replicas: 3, Image: "worker:1", CPU: quantity("2500m"), GPUs: 2}
	master, launcher, two := worker, Role{Name: "Launcher", Replicas: 1, Image: "launcher:1", CPU: quantity("1")}, worker
	master.Name, master.Replicas, two.Replicas = "Master", 1, 2
	torch, tensorflow, mpi := common(worker), common(worker), common(launcher, worker)
	torch.Framework, torch.ProcessesPerNode, tensorflow.Framework, mpi.SlotsPerWorker = Torch, "2", TensorFlow, 2
	pytorch := common(master, two)
	pytorch.ProcessesPerNode = "2"
	head, group := launcher, worker
	head.Name, head.Image, group.Name = "head", "head:1", RayWorkers
	return map[string]sample{
		"ray":            {RayJob, templates.Ray, common(head, group)},
		"tf":             {TFJob, templates.TF, common(Role{Name: "PS", Replicas: 1, Image: "ps:1", CPU: quantity("1")}, worker)},
		"pytorch":        {PyTorchJob, templates.PyTorch, pytorch},
		"mpi":            {func() Kind { return MPIJob("") }, templates.MPI, mpi},
		"mpi-v2beta1":    {func() Kind { return MPIJob("v2beta1") }, templates.MPI, mpi},
		"job":            {IndexedJob, templates.Job, common(worker)},
		"job-tensorflow": {IndexedJob, templates.Job, tensorflow},
		"job-torch":      {IndexedJob, templates.Job, torch},
	}
}

// Every kind in every dialect: what is written stays what it is.
func TestGoldenKinds(t *testing.T) {
	for kind, sample := range samples() {
		for _, w := range dialect.Writers() {
			t.Run(kind+" "+string(w.Dialect), func(t *testing.T) {
				s := sample.spec
				s.Gang.Dialect, s.Pod.Scheduler = w.Dialect, w.Scheduler
				objects, err := sample.write().Render(sample.preset(), s)
				if err != nil {
					t.Fatal(err)
				}
				golden.Compare(t, filepath.Join("testdata", "kind", kind+"-"+string(w.Dialect)+".yaml"), string(manifest(t, objects)))
			})
		}
	}
}

// What is written is read back: by the kind's reader as the job, by the dialect's as the gang of all members, and completing it
// adds nothing.
func TestKindsAreReadBack(t *testing.T) {
	for kind, sample := range samples() {
		for _, w := range dialect.Writers() {
			t.Run(kind+" "+string(w.Dialect), func(t *testing.T) {
				s := sample.spec
				s.Gang.Dialect, s.Pod.Scheduler = w.Dialect, w.Scheduler
				objects, err := sample.write().Render(sample.preset(), s)
				if err != nil {
					t.Fatal(err)
				}
				reader, _ := kinds.ByKind(objects.Job.GroupVersionKind().GroupKind())
				job, err := reader.Read(objects.Job)
				if err != nil || job.Total() != s.members() || len(job.Problems) > 0 || len(job.Roles) != len(s.Roles) {
					t.Fatalf("read %+v, %v", job, err)
				}
				gangs := map[string]bool{}
				for _, role := range job.Roles {
					d, name := groupReference(&role.Template)
					if want := w.Dialect; d != want && want != gang.None || name != "llama" && want != gang.None {
						t.Errorf("pods of %s are in %q of dialect %q", role.Name, name, d)
					}
					gangs[name] = true
					checkCommand(t, kind, role)
				}
				if len(gangs) != 1 {
					t.Errorf("members are in %v", gangs)
				}
				var group = objects.Owned
				if w.Object == nil {
					group = nil
				}
				if len(group) > 0 {
					r, _ := dialect.ReaderOf(w.Dialect)
					if d, err := r.Decode(group[0]); err != nil || d.MinMember != s.members() {
						t.Errorf("group %+v, %v", d, err)
					}
					again, err := Complete(objects.Job, group, FileSpec{Dialect: w.Dialect})
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(objects.Job, again.Job); diff != "" {
						t.Errorf("completing it changes it: %s", diff)
					}
				}
			})
		}
	}
}

// checkCommand: the command is that of every member, but of workers that wait for a launcher.
func checkCommand(t *testing.T, kind string, role gang.Role) {
	t.Helper()
	waits := strings.HasPrefix(kind, "mpi") && role.Name == "Worker" || kind == "ray" // whose entrypoint is submitted
	if c := role.Template.Spec.Containers[0]; (len(c.Command) == 0) != waits {
		t.Errorf("the command of %s is %q", role.Name, c.Command)
	}
}

// The index of a member reaches what TensorFlow reads: the kubelet puts a variable into another one that comes after it.
func TestIndexComesBeforeItsUse(t *testing.T) {
	sample := samples()["job-tensorflow"]
	objects, err := sample.write().Render(sample.preset(), sample.spec)
	if err != nil {
		t.Fatal(err)
	}
	reader, _ := kinds.ByKind(objects.Job.GroupVersionKind().GroupKind())
	job, err := reader.Read(objects.Job)
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, e := range job.Roles[0].Template.Spec.Containers[0].Env {
		if e.Name == "TF_CONFIG" && (!seen || !strings.Contains(e.Value, `"index":$(JOB_COMPLETION_INDEX)}`) || !strings.Contains(e.Value, `"llama-2.llama.research.svc:2222"`)) {
			t.Errorf("TF_CONFIG is %s", e.Value)
		}
		seen = seen || e.Name == "JOB_COMPLETION_INDEX" && e.ValueFrom.FieldRef.FieldPath == "metadata.annotations['batch.kubernetes.io/job-completion-index']"
	}
	if !seen {
		t.Error("the index is not there")
	}
	if objects.Owned[len(objects.Owned)-1].GetKind() != "Service" || job.Roles[0].Template.Spec.Subdomain != "llama" {
		t.Errorf("no Service under which members find each other: %v", objects.Owned)
	}
}

// One job of a kind does not change the next one.
func TestKindsAreIndependent(t *testing.T) {
	sample := samples()["job-torch"]
	first, err := sample.write().Render(sample.preset(), sample.spec)
	if err != nil {
		t.Fatal(err)
	}
	before := first.Job.DeepCopy()
	sample.spec.Pod.Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	if _, err := sample.write().Render(sample.preset(), sample.spec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, first.Job); diff != "" {
		t.Error(diff)
	}
}
