// Package kind knows every kind of job that gangctl reads.
package kind

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
	"github.com/gangctl/gangctl/pkg/gang/kind/pytorchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
)

// Readers are the kinds of job, the most usual first.
func Readers() []gang.JobReader {
	return []gang.JobReader{tfjob.Reader(), pytorchjob.Reader(), mpijob.Reader(), jobset.Reader(), leaderworkerset.Reader(), batchjob.Reader()}
}

// ByKind finds the reader of a kind.
func ByKind(kind schema.GroupKind) (gang.JobReader, bool) {
	return find(func(r gang.JobReader) bool { return r.GroupKind == kind })
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
