package submit

import (
	"fmt"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"

	"github.com/gangctl/gangctl/pkg/explain/near"
	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/manifest"
	"github.com/gangctl/gangctl/pkg/workload"
	"github.com/gangctl/gangctl/pkg/workload/registry"
)

// settle gives the objects of a file their namespace and name, and refuses a job that the operator would not run.
func (o *FileOptions) settle(m *manifest.Manifest, namespace string) error {
	if own := m.Job.GetNamespace(); own != "" {
		if o.typed("namespace") && own != namespace {
			return failure.Usagef("--namespace %s contradicts %s, whose %s is in namespace %s", namespace, o.name(), m.Job.GetKind(), own).
				WithHint("leave out --namespace, or change the file")
		}
		namespace = own
	}
	m.Job.SetNamespace(namespace)
	if m.Job.GetName() == "" {
		m.Job.SetName(m.Job.GetGenerateName() + o.Suffix())
		m.Job.SetGenerateName("")
	}
	if pg := m.PodGroup; pg != nil {
		if own := pg.GetNamespace(); own != "" && own != namespace {
			return failure.Errorf("%s: PodGroup %s is in namespace %s, but its %s in %s", o.name(), pg.GetName(), own, m.Job.GetKind(), namespace)
		}
		if pg.GetName() == "" {
			return failure.Errorf("%s: the PodGroup has no metadata.name", o.name())
		}
		pg.SetNamespace(namespace)
		pg.SetOwnerReferences(nil) // it will be owned by the job
	}
	reader, ok := registry.ByKind(m.Job.GroupVersionKind().GroupKind())
	if !ok {
		return failure.Errorf("%s: gangctl does not know jobs of kind %s", o.name(), m.Job.GroupVersionKind())
	}
	job, err := reader.Read(m.Job)
	if err != nil {
		return failure.Errorf("%s: %w", o.name(), err)
	}
	if problem, hint := jobProblem(reader, job); problem != "" {
		return failure.Errorf("%s: %s %s/%s: %s", o.name(), job.Kind.Kind, namespace, job.Meta.Name, problem).WithHint("%s", hint)
	}
	return nil
}

// roleNames are the roles that operators know, by kind.
func roleNames(kind string) []string {
	switch kind {
	case kubeflowv1.TFJobKind:
		return []string{string(kubeflowv1.TFJobReplicaTypeChief), string(kubeflowv1.TFJobReplicaTypeMaster), string(kubeflowv1.TFJobReplicaTypePS),
			string(kubeflowv1.TFJobReplicaTypeWorker), string(kubeflowv1.TFJobReplicaTypeEval)}
	case kubeflowv1.PyTorchJobKind:
		return []string{string(kubeflowv1.PyTorchJobReplicaTypeMaster), string(kubeflowv1.PyTorchJobReplicaTypeWorker)}
	case kubeflowv1.MPIJobKind:
		return []string{string(kubeflowv1.MPIJobReplicaTypeLauncher), string(kubeflowv1.MPIJobReplicaTypeWorker)}
	}
	return nil
}

// jobProblem says why the operator would not run a job, or make none of its pods; it is empty if it would.
func jobProblem(reader workload.Reader, job workload.Job) (problem, hint string) {
	if len(job.Problems) > 0 {
		return strings.Join(job.Problems, "; "), ""
	}
	replicas := map[string]int32{}
	names := roleNames(job.Kind.Kind)
	for _, r := range job.Roles {
		path := strings.Join(reader.Template(r.Name), ".")
		if r.Replicas < 0 {
			return fmt.Sprintf("%s: %d: must be 0 or more", strings.TrimSuffix(path, "template")+"replicas", r.Replicas), ""
		}
		if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, r.Name) }) {
			problem = fmt.Sprintf("%s: no role of a %s: must be one of %s", strings.TrimSuffix(path, ".template"), job.Kind.Kind, strings.Join(names, ", "))
			if nearest := near.Nearest(r.Name, names); nearest != "" {
				hint = "did you mean " + nearest + "?"
			}
			return problem, hint
		}
		replicas[strings.ToLower(r.Name)] += r.Replicas
	}
	if job.Total() == 0 {
		return "it asks for no members: every role has 0 replicas", ""
	}
	if reader.Controller.Name == "" {
		return "", "" // the API server checks what it makes itself
	}
	return nameProblem(reader, job.Meta.Name, replicas)
}
