// Package registry knows every kind of job that gangctl reads.
package registry

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/workload"
	"github.com/gangctl/gangctl/pkg/workload/batchjob"
	"github.com/gangctl/gangctl/pkg/workload/mpijob"
	"github.com/gangctl/gangctl/pkg/workload/pytorchjob"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// Readers are the kinds of job, the most usual first.
func Readers() []workload.Reader {
	return []workload.Reader{tfjob.Reader(), pytorchjob.Reader(), mpijob.Reader(), batchjob.Reader()}
}

// ByKind finds the reader of a kind.
func ByKind(kind schema.GroupKind) (workload.Reader, bool) {
	return find(func(r workload.Reader) bool { return r.GroupKind == kind })
}

// ByWord finds the reader that somebody means by a word such as tfjob, tfjobs or tf.
func ByWord(word string) (workload.Reader, bool) {
	return find(func(r workload.Reader) bool { return slices.Contains(r.Words, strings.ToLower(word)) })
}

// MeansPod reports whether a word means pods rather than a kind of job.
func MeansPod(word string) bool { return word == "pod" || word == "pods" || word == "po" }

func find(match func(workload.Reader) bool) (workload.Reader, bool) {
	readers := Readers()
	i := slices.IndexFunc(readers, match)
	if i < 0 {
		return workload.Reader{}, false
	}
	return readers[i], true
}
