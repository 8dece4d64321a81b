package resize

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// Record is a job that is being deleted and made again, with what it owns: what would be lost if nothing kept it meanwhile.
type Record struct {
	// Deleted is the uid of the job that is deleted.
	Deleted types.UID
	// Change is what the job is made again for: no other one is done on top of it.
	Change Change
	// Job is the new job, Owned what goes with it: none has what only servers write.
	Job   *unstructured.Unstructured
	Owned []*unstructured.Unstructured
}

const (
	// RecordType is the type of the Secrets that keep records: an object of another type is none, whatever its name.
	RecordType corev1.SecretType = "gangctl.dev/resize"
	// recordKey is the key of a record in its Secret, maxOwned how many objects a job owns at most, and maxRecord how many bytes a record has: an
	// API server takes no more of a Secret.
	recordKey = "record"
	maxOwned  = 16
	maxRecord = corev1.MaxSecretSize
)

// MadeFrom is the annotation of a job that was made again: the uid of the one that was deleted for it, and a hash of the change.
const MadeFrom = provenance.MadeFromAnnotation

// RecordName is the name of the Secret that keeps the record of a job of a kind.
func RecordName(kind, job string) string {
	return "gangctl-resize-" + strings.ToLower(kind) + "-" + job
}

// ownedKind is a kind of objects that submit makes for a job, and where they are served.
type ownedKind struct {
	kind     schema.GroupKind
	resource schema.GroupVersionResource
}

// ownedKinds are those besides the group of a job.
func ownedKinds() []ownedKind {
	return []ownedKind{
		{schema.GroupKind{Kind: "Service"}, schema.GroupVersionResource{Version: "v1", Resource: "services"}},
		{schema.GroupKind{Kind: "ConfigMap"}, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}},
		{schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}},
		{schema.GroupKind{Group: trainjob.Group, Kind: trainjob.RuntimeKind}, trainjob.RuntimeResource(trainjob.RuntimeKind)},
	}
}

// OwnedResources are those of the objects that submit makes for a job, besides its group.
func OwnedResources(job *gang.Job) (all []schema.GroupVersionResource) {
	for _, k := range ownedKinds() {
		if k.kind.Group != trainjob.Group || trainjob.HasRuntime(job.Object) { // others need neither serve them nor let them be listed
			all = append(all, k.resource)
		}
	}
	return all
}

// OtherResources are those of the objects that people let a job own, and that are not made again with it.
func OtherResources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Version: "v1", Resource: "persistentvolumeclaims"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "serviceaccounts"},
		{Group: "apps", Version: "v1", Resource: "statefulsets"}, {Group: "batch", Version: "v1", Resource: "cronjobs"},
		{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}, {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}, {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	}
}

// NewRecord is the record of a job as planned. owned are the objects that the job owns, as they are stored; the group among them is taken as planned.
func NewRecord(p *Plan, owned []*unstructured.Unstructured) *Record {
	r := &Record{Deleted: p.Job.Before.GetUID(), Change: p.Intent.Change, Job: again(p.Job.After)}
	r.annotate()
	if p.Gang.Suspended && p.Intent.Resume {
		unstructured.RemoveNestedField(r.Job.Object, suspension.FieldOf(p.Gang.Kind.Group)...)
	}
	if p.Group.Before != nil && OwnedBy(p.Group.Before, r.Deleted) {
		r.Owned = append(r.Owned, again(p.Group.After))
	}
	for _, o := range owned {
		r.Owned = append(r.Owned, again(o))
	}
	return r
}

// annotate has the new job keep what it is made from.
func (r *Record) annotate() {
	annotations := r.Job.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[MadeFrom] = r.madeFrom()
	r.Job.SetAnnotations(annotations)
}

// madeFrom is what a job that is made of the record keeps: two runs may delete the same job for different changes.
func (r *Record) madeFrom() string {
	change, err := json.Marshal(r.Change)
	if err != nil {
		return string(r.Deleted) // a change that cannot be encoded is kept nowhere
	}
	return fmt.Sprintf("%s/%x", r.Deleted, sha256.Sum256(change))
}

// Made reports whether a job is the one that was made of the record. Whoever keeps jobs as a repository has them may have made the old one again,
// and another run may have made it for another change.
func (r *Record) Made(job *unstructured.Unstructured) bool {
	return job.GetUID() != r.Deleted && job.GetAnnotations()[MadeFrom] == r.madeFrom()
}

// OwnedBy reports whether an object goes with the owner of the uid, and is not made by its controller. One that has another owner, too, stays.
func OwnedBy(o metav1.Object, owner types.UID) bool {
	if slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID != owner }) {
		return false
	}
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner && (ref.Controller == nil || !*ref.Controller)
	})
}

// again is an object as it can be created again, with all that people wrote.
func again(stored *unstructured.Unstructured) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(stored.Object)}
	delete(u.Object, "status")
	metadata := map[string]any{}
	old, _ := u.Object["metadata"].(map[string]any)
	for _, key := range []string{"name", "namespace", "labels", "annotations"} {
		if value, ok := old[key]; ok {
			metadata[key] = value
		}
	}
	u.Object["metadata"] = metadata
	annotations := u.GetAnnotations()
	delete(annotations, Annotation)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	u.SetAnnotations(annotations)
	switch u.GetKind() {
	case "Service": // its address is of a range that the server hands out
		if ip, _, _ := unstructured.NestedString(u.Object, "spec", "clusterIP"); ip != corev1.ClusterIPNone {
			unstructured.RemoveNestedField(u.Object, "spec", "clusterIP")
		}
		unstructured.RemoveNestedField(u.Object, "spec", "clusterIPs")
	case "Job":
		if manual, _, _ := unstructured.NestedBool(u.Object, "spec", "manualSelector"); !manual {
			leaveGenerated(u)
		}
	}
	return u
}

// leaveGenerated takes away what the API server writes into a Job and refuses in a new one.
func leaveGenerated(job *unstructured.Unstructured) {
	unstructured.RemoveNestedField(job.Object, "spec", "selector")
	labels, _, _ := unstructured.NestedStringMap(job.Object, "spec", "template", "metadata", "labels")
	for key := range labels {
		if provenance.Written(key) {
			unstructured.RemoveNestedField(job.Object, "spec", "template", "metadata", "labels", key)
			unstructured.RemoveNestedField(job.Object, "metadata", "labels", key)
		}
	}
	unstructured.RemoveNestedField(job.Object, "metadata", "labels", batchv1.ControllerUidLabel)
}

// Secret is the object that keeps the record: what jobs have in their variables, only those may read who may read secrets. One that could not be
// read again is an error.
func (r *Record) Secret(reader gang.JobReader) (*corev1.Secret, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", r.Job.GetKind(), r.Job.GetName(), err)
	}
	m := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Job.GetNamespace(), Name: RecordName(r.Job.GetKind(), r.Job.GetName()),
			Labels: map[string]string{"app.kubernetes.io/managed-by": "gangctl"}},
		Type: RecordType,
		Data: map[string][]byte{recordKey: text},
	}
	_, err = ReadRecord(m, reader, r.Job.GetName())
	return m, err
}

// ReadRecord reads the record of a job. Whoever may write Secrets may have written it: it holds that job, and objects of the kinds that submit
// makes, of the same namespace.
func ReadRecord(m *corev1.Secret, reader gang.JobReader, name string) (*Record, error) {
	if m.Type != RecordType {
		return nil, fmt.Errorf("it is of type %q, records are of type %s", m.Type, RecordType)
	}
	if n := len(m.Data[recordKey]); n > maxRecord {
		return nil, fmt.Errorf("it has %d bytes, a record has at most %d", n, maxRecord)
	}
	r := &Record{}
	if err := json.Unmarshal(m.Data[recordKey], r); err != nil {
		return nil, fmt.Errorf("it is no record of a job: %w", err)
	}
	if r.Job == nil || r.Deleted == "" || r.Job.GroupVersionKind().GroupKind() != reader.GroupKind || r.Job.GetName() != name || r.Job.GetNamespace() != m.Namespace {
		return nil, fmt.Errorf("it is no record of %s %s/%s", reader.Kind, m.Namespace, name)
	}
	if len(r.Owned) > maxOwned {
		return nil, fmt.Errorf("the job owns %d objects, at most %d can be made again", len(r.Owned), maxOwned)
	}
	seen := map[string]bool{}
	for i, o := range r.Owned {
		if o == nil || o.GetNamespace() != m.Namespace || !mayOwn(o.GroupVersionKind().GroupKind()) {
			return nil, fmt.Errorf("object %d that the job owns is none that can be made again", i+1)
		}
		if faults := validation.IsDNS1123Subdomain(o.GetName()); len(faults) > 0 {
			return nil, fmt.Errorf("object %d that the job owns has no name that an object can have: %q", i+1, o.GetName())
		}
		what := o.GroupVersionKind().GroupKind().String() + " " + o.GetName()
		if seen[what] {
			return nil, fmt.Errorf("object %d that the job owns is there twice: %s", i+1, what)
		}
		seen[what] = true
		r.Owned[i] = again(o)
	}
	r.Job = again(r.Job)
	r.annotate()
	return r, nil
}

// mayOwn reports whether jobs that gangctl makes own objects of a kind.
func mayOwn(kind schema.GroupKind) bool {
	_, group := dialect.ByKind(kind)
	return group || slices.ContainsFunc(ownedKinds(), func(k ownedKind) bool { return k.kind == kind })
}
