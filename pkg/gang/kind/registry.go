// Package kind knows every kind of job that gangctl reads.
package kind

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
	"github.com/gangctl/gangctl/pkg/gang/kind/pytorchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
)

// Readers are the kinds of job, the most usual first.
func Readers() []gang.JobReader {
	return []gang.JobReader{tfjob.Reader(), pytorchjob.Reader(), mpijob.Reader(), jobset.Reader(), ray.JobReader(), ray.ClusterReader(), batchjob.Reader()}
}

// ByKind finds the reader of a kind.
func ByKind(kind schema.GroupKind) (gang.JobReader, bool) {
	return find(func(r gang.JobReader) bool { return r.GroupKind == kind })
}

// MadeOf is the job that an object of a kind was made of, and whose members are those of the object: the RayJob of a RayCluster. It is the
// controller of the object, of a kind that [gang.JobReader.Makes] such objects. ok is false for a job of its own.
func MadeOf(kind schema.GroupKind, obj metav1.Object) (reader gang.JobReader, owner *metav1.OwnerReference, ok bool) {
	owner = metav1.GetControllerOfNoCopy(obj)
	if owner == nil {
		return gang.JobReader{}, nil, false
	}
	above := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
	reader, ok = find(func(r gang.JobReader) bool { return r.GroupKind == above && r.Makes == kind })
	return reader, owner, ok
}

// ByName finds the reader of a kind by a name that users type, such as tfjob, tfjobs or tf.
func ByName(name string) (gang.JobReader, bool) {
	return find(func(r gang.JobReader) bool { return slices.Contains(r.Names, strings.ToLower(name)) })
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
	readers := Readers()
	i := slices.IndexFunc(readers, match)
	if i < 0 {
		return gang.JobReader{}, false
	}
	return readers[i], true
}
