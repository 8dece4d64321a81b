package resubmit

import (
	"bytes"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
	"github.com/gangctl/gangctl/pkg/submit/setpath"
)

// typeOf is a value of the Go type of a job, by which --set is checked.
func typeOf(job *gang.Job) any {
	switch job.Kind.Kind {
	case "PyTorchJob":
		return kubeflowv1.PyTorchJob{}
	case "MPIJob":
		return kubeflowv1.MPIJob{}
	case "Job":
		return batchv1.Job{}
	default:
		return kubeflowv1.TFJob{}
	}
}

// manifest is the job as a file would have it, under its new name, and the arguments that submit it.
func (o *Options) manifest(job *gang.Job) ([]string, *bytes.Buffer, error) {
	if o.NewName == "" {
		return nil, nil, o.taken(job)
	}
	bare := provenance.Bare(job.Object)
	content, err := setpath.Apply(bare.Object, typeOf(job), o.Set...)
	if err != nil {
		return nil, nil, failure.Usagef("--set %w", err)
	}
	bare.Object = content
	bare.SetName(o.NewName)
	key, _ := dialect.OfTemplate(job)
	leaveGang(bare, job.Meta.Name)
	text, err := yaml.Marshal(bare.Object)
	if err != nil {
		return nil, nil, err
	}
	args := []string{"submit", "-f", "-", "--namespace=" + job.Meta.Namespace}
	if w, ok := dialect.WriterOf(key.Dialect); ok && w.Dialect != gang.SchedulerPlugins {
		args = append(args, "--dialect="+string(key.Dialect))
	}
	return append(args, o.passed...), bytes.NewBuffer(text), nil
}

// leaveGang takes pods out of the gang of the old job: the new one has its own. What the operator of a Job wrote on its pods goes, too.
func leaveGang(job *unstructured.Unstructured, old string) {
	spec, _, _ := unstructured.NestedMap(job.Object, "spec")
	delete(spec, "selector")
	visit(spec, func(template map[string]any) {
		metadata, ok := template["metadata"].(map[string]any)
		if !ok {
			return
		}
		for _, field := range []string{"labels", "annotations"} {
			values, ok := metadata[field].(map[string]any)
			if !ok {
				continue
			}
			for key, value := range values {
				reference := key == labels.MinAvailableLabel || value == old
				if reference && groupReferences[key] || provenance.Written(key) {
					delete(values, key)
				}
			}
			if len(values) == 0 {
				delete(metadata, field)
			}
		}
	})
	job.Object["spec"] = spec
}

// groupReferences are the labels and annotations that put a pod into a gang.
var groupReferences = map[string]bool{
	schedulerplugins.PodGroupLabel: true, labels.NameLabel: true, labels.MinAvailableLabel: true,
	"scheduling.k8s.io/group-name": true, "pod-group.scheduling.sigs.k8s.io": true,
}

// visit calls see with every pod template below a value.
func visit(value any, see func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		if template, ok := v["template"].(map[string]any); ok {
			see(template)
		}
		for _, item := range v {
			visit(item, see)
		}
	case []any:
		for _, item := range v {
			visit(item, see)
		}
	}
}
