// Package kind knows every kind of job that gangctl reads.
package kind

import (
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
	"github.com/gangctl/gangctl/pkg/gang/kind/pytorchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
)

// Readers are the kinds of job, the most usual first.
func Readers() []gang.JobReader { return slices.Clone(readers()) }

// readers are made once: the kind of its controller is looked up for every pod of a cluster.
var readers = sync.OnceValue(func() []gang.JobReader {
	return slices.Concat([]gang.JobReader{
		tfjob.Reader(), pytorchjob.Reader(), mpijob.Reader(), trainjob.Reader(), jobset.Reader(), leaderworkerset.Reader(),
		ray.JobReader(), ray.ClusterReader(), batchjob.Reader(), volcanojob.Reader(),
	}, kubeflow.Further())
})

// ByKind finds the reader of a kind.
func ByKind(kind schema.GroupKind) (gang.JobReader, bool) {
	return find(func(r gang.JobReader) bool { return r.GroupKind == kind })
}

// ByResource finds the reader of the kind that is served as a resource.
func ByResource(resource schema.GroupResource) (gang.JobReader, bool) {
	return find(func(r gang.JobReader) bool { return r.Group == resource.Group && r.Resource == resource.Resource })
}

// ByName finds the reader of a kind by a name that users type, such as tfjob, tfjobs or tf, or by KIND.GROUP, as [gang.Job.Ref] prints it.
func ByName(name string) (gang.JobReader, bool) {
	name = strings.ToLower(name)
	alone, group, _ := strings.Cut(name, ".")
	return find(func(r gang.JobReader) bool {
		return slices.Contains(r.Names, name) || r.Group == group && slices.Contains(r.Names, alone)
	})
}

// WholeOf is the job that an object is a part of: its controller, if that is of a known kind. It is nil for an object of its own. Whether
// there is such a job is not known: who made the object may have written anything.
func WholeOf(part metav1.Object) (*metav1.OwnerReference, gang.JobReader) {
	ref := metav1.GetControllerOfNoCopy(part)
	if ref == nil {
		return nil, gang.JobReader{}
	}
	reader, known := ByKind(gang.OwnerKind(ref))
	if !known {
		return nil, gang.JobReader{}
	}
	return ref, reader
}

// SourceOf is the job that an object of a kind was made of, and whose members are those of the object: the RayJob of a RayCluster, the TrainJob
// of a JobSet. It is the object's controller, of a kind that [gang.JobReader.Makes] such objects; nil for a job of its own.
func SourceOf(kind schema.GroupKind, made metav1.Object) (*metav1.OwnerReference, gang.JobReader) {
	ref, reader := WholeOf(made)
	if ref == nil || reader.Makes != kind {
		return nil, gang.JobReader{}
	}
	return ref, reader
}

// PartsOf is the kind of the objects through which jobs of a kind have their pods: what the controller makes of them, or batch Jobs. ok is false
// for kinds that make pods themselves, and for those whose parts are not read.
func PartsOf(whole gang.JobReader) (parts gang.JobReader, ok bool) {
	switch {
	case !whole.Makes.Empty():
		return ByKind(whole.Makes)
	case whole.OwnsPart != nil && !whole.ByLabel:
		return batchjob.Reader(), true
	}
	return gang.JobReader{}, false
}

// ByLabel is the job of a kind with [gang.JobReader.ByLabel] that a pod is of, by its labels and its controller; the name is empty for a pod of
// none. Whether there is such a job is not known.
func ByLabel(pod *corev1.Pod) (reader gang.JobReader, name string) {
	for _, r := range readersByLabel() {
		name := pod.Labels[r.NameLabels[0]]
		if name == "" {
			continue
		}
		job := gang.Job{Reader: r, Meta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}}
		if job.Owns(pod) {
			return r, name
		}
	}
	return gang.JobReader{}, ""
}

// readersByLabel are made once, as readers are, for the same reason.
var readersByLabel = sync.OnceValue(func() []gang.JobReader {
	return slices.DeleteFunc(Readers(), func(r gang.JobReader) bool { return !r.ByLabel })
})

// MadeFrom is an object as the controller makes it of a job.
func MadeFrom(job, object *unstructured.Unstructured) *unstructured.Unstructured {
	u := object.DeepCopy()
	u.SetNamespace(job.GetNamespace())
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(job, job.GroupVersionKind())})
	return u
}

// Names are the names of the kinds, the first of each that users may type.
func Names() []string {
	var names []string
	for _, r := range Readers() {
		names = append(names, r.Names[0])
	}
	return names
}

// MeansPod reports whether a name means pods rather than a kind of job.
func MeansPod(name string) bool { return name == "pod" || name == "pods" || name == "po" }

func find(match func(gang.JobReader) bool) (gang.JobReader, bool) {
	all := readers()
	i := slices.IndexFunc(all, match)
	if i < 0 {
		return gang.JobReader{}, false
	}
	return all[i], true
}
