package resubmit

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
	"github.com/gangctl/gangctl/pkg/submit/render"
	"github.com/gangctl/gangctl/pkg/submit/setpath"
)

// typeOf is a value of the Go type of a kind of job, by which --set is checked; nil for kinds that have none here.
func typeOf(kind schema.GroupVersionKind) any {
	switch kind {
	case kubeflowv1.GroupVersion.WithKind("TFJob"):
		return kubeflowv1.TFJob{}
	case kubeflowv1.GroupVersion.WithKind("PyTorchJob"):
		return kubeflowv1.PyTorchJob{}
	case kubeflowv1.GroupVersion.WithKind("MPIJob"):
		return kubeflowv1.MPIJob{}
	case kubeflowv1.GroupVersion.WithKind(kubeflowv1.XGBoostJobKind):
		return kubeflowv1.XGBoostJob{}
	case kubeflowv1.GroupVersion.WithKind(kubeflowv1.PaddleJobKind):
		return kubeflowv1.PaddleJob{}
	case kubeflowv1.GroupVersion.WithKind(kubeflowv1.JAXJobKind):
		return kubeflowv1.JAXJob{}
	case batchv1.SchemeGroupVersion.WithKind("Job"):
		return batchv1.Job{}
	default:
		return nil
	}
}

// manifest is the job as a file would have it, under its new name, and the arguments that submit it.
func (o *Options) manifest(ctx context.Context, client *kube.Client, job *gang.Job) ([]string, *bytes.Buffer, error) {
	if o.NewName == "" {
		return nil, nil, o.taken(job)
	}
	kept := provenance.Argv(provenance.CommandLine(job.Object))
	bare := provenance.Bare(job.Object)
	before, err := job.Reader.Job(bare.DeepCopy()) // without a status it has all its members, even if it has ended
	if err != nil {
		return nil, nil, failure.Errorf("%w", err)
	}
	if err := o.resume(bare, job); err != nil {
		return nil, nil, err
	}
	content, err := setpath.Apply(bare.Object, typeOf(bare.GroupVersionKind()), o.Set...)
	if err != nil {
		return nil, nil, failure.Usagef("--set %w", err)
	}
	bare.Object = content
	bare.SetName(o.NewName)
	key, _ := dialect.OfTemplate(job)
	if err := o.leaveGang(bare, job.Meta.Name); err != nil {
		return nil, nil, err
	}
	if kept != nil && len(o.Set) > 0 {
		render.RemoveDerived(bare, *before) // submit writes it for the members as they are now
	}
	text, err := o.documents(ctx, client, before, bare)
	if err != nil {
		return nil, nil, err
	}
	args := []string{"submit", "-f", "-", "--namespace=" + job.Meta.Namespace}
	if job.BatchJob != nil {
		args = slices.Insert(args, 1, "job") // be it of one pod
	}
	if w, ok := dialect.WriterOf(key.Dialect); ok && w.Dialect != gang.SchedulerPlugins {
		args = append(args, "--dialect="+string(key.Dialect))
	}
	return append(args, o.passed...), bytes.NewBuffer(text), nil
}

// documents are the new job, after the objects that submit made for the old one, which it has and owns, too.
func (o *Options) documents(ctx context.Context, client *kube.Client, before *gang.Job, bare *unstructured.Unstructured) ([]byte, error) {
	files, err := o.files(ctx, client, before, bare)
	if err != nil {
		return nil, err
	}
	service, err := o.indexed(ctx, client, before, bare)
	if err != nil {
		return nil, err
	}
	var documents [][]byte
	for _, object := range []*unstructured.Unstructured{files, service, bare} {
		if object == nil {
			continue
		}
		if object != bare {
			render.Own(object, bare) // which has no uid yet
		}
		text, err := printer.MarshalYAML(object.Object)
		if err != nil {
			return nil, err
		}
		documents = append(documents, text)
	}
	return bytes.Join(documents, []byte("---\n")), nil
}

// resume has the new job run where the old one is suspended: whoever did that, be it a scheduler, would not resume the new one. Kueue suspends what it
// admits by itself.
func (o *Options) resume(bare *unstructured.Unstructured, old *gang.Job) error {
	field := suspension.FieldOf(bare.GroupVersionKind().Group)
	if field == nil {
		return nil
	}
	suspended, _, err := unstructured.NestedBool(bare.Object, field...)
	if err != nil || !suspended {
		return err
	}
	fmt.Fprintf(o.IO.ErrOut, "note: %s is suspended, and the new job is not; with --set %s=true it is\n", old, strings.Join(field, "."))
	return unstructured.SetNestedField(bare.Object, false, field...)
}

// files are the local files that submit put into a ConfigMap of the old job, in one of the new job, which then refers to that; nil if there are none.
func (o *Options) files(ctx context.Context, client *kube.Client, job *gang.Job, bare *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	old, name := render.FilesName(job.Meta.Name), render.FilesName(o.NewName)
	found := false
	visit(bare.Object["spec"], func(template map[string]any) {
		volumes, _, _ := unstructured.NestedSlice(template, "spec", "volumes")
		for i := range volumes {
			volume, _ := volumes[i].(map[string]any)
			if from, _, _ := unstructured.NestedString(volume, "configMap", "name"); volume["name"] == "files" && from == old {
				found = unstructured.SetNestedField(volume, name, "configMap", "name") == nil
			}
		}
		if spec, ok := template["spec"].(map[string]any); ok && found {
			spec["volumes"] = volumes
		}
	})
	if !found {
		return nil, nil
	}
	kept, err := client.Typed.CoreV1().ConfigMaps(job.Meta.Namespace).Get(ctx, old, metav1.GetOptions{})
	if err != nil {
		return nil, failure.Errorf("get ConfigMap %s/%s, which has the files of %s: %w", job.Meta.Namespace, old, job, err)
	}
	return render.Unstructured(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: job.Meta.Namespace, Labels: kept.Labels}, Data: kept.Data, BinaryData: kept.BinaryData})
}

// leaveGang takes pods out of the gangs of the old job: the new one has its own. What the operator of a Job wrote on its pods goes, too.
func (o *Options) leaveGang(job *unstructured.Unstructured, old string) error {
	spec, _, _ := unstructured.NestedMap(job.Object, "spec")
	delete(spec, "selector")
	relabel(spec, old, o.NewName)
	var failed error
	visit(spec, func(template map[string]any) {
		pods := &corev1.PodTemplateSpec{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, pods); err != nil {
			failed = failure.Errorf("read the pods of %s %s: %w", job.GetKind(), old, err)
			return
		}
		dialect.Leave(pods, func(name string) string { return o.renamed(name, old) })
		if pod, ok := template["spec"].(map[string]any); ok {
			delete(pod, "schedulingGroup")
		}
		if metadata, ok := template["metadata"].(map[string]any); ok {
			put(metadata, "labels", pods.Labels)
			put(metadata, "annotations", pods.Annotations)
		}
	})
	job.Object["spec"] = spec
	return failed
}

// relabel has members attract or repel each other, and not those of the old job.
func relabel(value any, was, is string) {
	switch v := value.(type) {
	case map[string]any:
		if v[render.MemberLabel] == was {
			v[render.MemberLabel] = is
		}
		for _, item := range v {
			relabel(item, was, is)
		}
	case []any:
		for _, item := range v {
			relabel(item, was, is)
		}
	}
}

// renamed is the name for the new job of something that has one after that of the old job, or another one.
func (o *Options) renamed(name, old string) string {
	if rest, ok := strings.CutPrefix(name, old); ok && (rest == "" || rest[0] == '-') {
		return o.NewName + rest
	}
	return o.NewName + "-" + name
}

// put writes labels or annotations without those that programs wrote about the old job, and no empty map.
func put(metadata map[string]any, field string, values map[string]string) {
	left := map[string]any{}
	for key, value := range values {
		if !provenance.Written(key) {
			left[key] = value
		}
	}
	if metadata[field] = left; len(left) == 0 {
		delete(metadata, field)
	}
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
