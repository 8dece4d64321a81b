package submit

import (
	"fmt"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"

	"github.com/gangctl/gangctl/pkg/explain/near"
	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/manifest"
	"github.com/gangctl/gangctl/pkg/workload"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// settle gives the objects of a file their namespace and name, and refuses a job that the operator would not run.
func (o *FileOptions) settle(m *manifest.Manifest, namespace string) error {
	if own := m.Job.GetNamespace(); own != "" {
		if o.typed("namespace") && own != namespace {
			return failure.Usagef("--namespace %s contradicts %s, whose TFJob is in namespace %s", namespace, o.name(), own).
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
			return failure.Errorf("%s: PodGroup %s is in namespace %s, but its TFJob in %s", o.name(), pg.GetName(), own, namespace)
		}
		if pg.GetName() == "" {
			return failure.Errorf("%s: the PodGroup has no metadata.name", o.name())
		}
		pg.SetNamespace(namespace)
		pg.SetOwnerReferences(nil) // it will be owned by the job
	}
	job, err := tfjob.Reader().Read(m.Job)
	if err != nil {
		return failure.Errorf("%s: %w", o.name(), err)
	}
	if problem, hint := jobProblem(job); problem != "" {
		return failure.Errorf("%s: TFJob %s/%s: %s", o.name(), namespace, job.Meta.Name, problem).WithHint("%s", hint)
	}
	return nil
}

// roleNames are the roles of a TFJob.
func roleNames() []string {
	return []string{string(kubeflowv1.TFJobReplicaTypeChief), string(kubeflowv1.TFJobReplicaTypeMaster), string(kubeflowv1.TFJobReplicaTypePS),
		string(kubeflowv1.TFJobReplicaTypeWorker), string(kubeflowv1.TFJobReplicaTypeEval)}
}

// jobProblem says why the operator would not run a job, or make none of its pods; it is empty if it would.
func jobProblem(job workload.Job) (problem, hint string) {
	if len(job.Problems) > 0 {
		return strings.Join(job.Problems, "; "), ""
	}
	replicas := map[string]int32{}
	for _, r := range job.Roles {
		if r.Replicas < 0 {
			return fmt.Sprintf("spec.tfReplicaSpecs.%s.replicas: %d: must be 0 or more", r.Name, r.Replicas), ""
		}
		known := ""
		for _, name := range roleNames() {
			if strings.EqualFold(name, r.Name) {
				known = name
			}
		}
		if known == "" {
			problem = fmt.Sprintf("spec.tfReplicaSpecs.%s: no role of a TFJob: must be one of %s", r.Name, strings.Join(roleNames(), ", "))
			if nearest := near.Nearest(r.Name, roleNames()); nearest != "" {
				hint = "did you mean " + nearest + "?"
			}
			return problem, hint
		}
		replicas[strings.ToLower(r.Name)] += r.Replicas
	}
	if job.Total() == 0 {
		return "it asks for no members: every role has 0 replicas", ""
	}
	return nameProblem(job.Meta.Name, replicas)
}
