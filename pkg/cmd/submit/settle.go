package submit

import (
	"fmt"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/gang"
	jobkinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/submit/manifest"
)

// settle gives the objects of a file their namespaces and names, finds the gang of each job, and refuses jobs that the operator
// would not run.
func (o *FileOptions) settle(m *manifest.Manifest, namespace string) ([]part, error) {
	var jobs []gang.Job
	taken := map[string]bool{}
	for _, u := range m.Jobs {
		if err := o.settleNamespace(u, namespace); err != nil {
			return nil, err
		}
		if u.GetName() == "" {
			u.SetName(u.GetGenerateName() + o.Suffix())
			u.SetGenerateName("")
		}
		reader, ok := jobkinds.ByKind(u.GroupVersionKind().GroupKind())
		if !ok {
			return nil, failure.Errorf("%s: gangctl does not know jobs of kind %s", o.name(), u.GroupVersionKind())
		}
		job, err := reader.Read(u)
		if err != nil {
			return nil, failure.Errorf("%s: %w", o.name(), err)
		}
		if problem, hint := jobProblem(reader, job); problem != "" {
			return nil, failure.Errorf("%s: %s: %s", o.name(), named(u), problem).WithHint("%s", hint)
		}
		if taken[named(u)] {
			return nil, failure.Errorf("%s: it holds %s twice", o.name(), named(u))
		}
		taken[named(u)] = true
		jobs = append(jobs, job)
	}
	for _, group := range m.Groups {
		if group.GetName() == "" {
			return nil, failure.Errorf("%s: the PodGroup has no metadata.name", o.name())
		}
		group.SetOwnerReferences(nil) // it will be owned by its job
	}
	for _, other := range m.Others {
		if err := o.settleOther(other, namespace); err != nil {
			return nil, err
		}
	}
	parts, err := pair(m.Jobs, jobs, m.Groups)
	if err != nil {
		return nil, failure.Errorf("%s: %w", o.name(), err)
	}
	return parts, nil
}

// settleNamespace gives an object that has none the namespace of the command line, and refuses another one where that was typed.
func (o *FileOptions) settleNamespace(u *unstructured.Unstructured, namespace string) error {
	switch own := u.GetNamespace(); {
	case own == "":
		u.SetNamespace(namespace)
	case o.typed("namespace") && own != namespace:
		return failure.Usagef("--namespace %s contradicts %s, whose %s is in namespace %s", namespace, o.name(), u.GetKind(), own).
			WithHint("leave out --namespace, or change the file")
	}
	return nil
}

// settleOther does so for an object beside the jobs. Which kinds have a namespace is known of those of Kubernetes itself; what is
// not known here is asked of the API server before anything is created.
func (o *FileOptions) settleOther(u *unstructured.Unstructured, namespace string) error {
	switch namespaced, known := namespacedKind(u.GroupVersionKind().GroupKind()); {
	case known && namespaced, !known && u.GetNamespace() != "":
		return o.settleNamespace(u, namespace)
	case known && u.GetNamespace() != "":
		return failure.Errorf("%s: %s %s has a namespace, which its kind has not", o.name(), u.GetKind(), u.GetName()).WithHint("leave metadata.namespace out of it")
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
func jobProblem(reader gang.JobReader, job gang.Job) (problem, hint string) {
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
			if nearest := suggest.Nearest(r.Name, names); nearest != "" {
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
