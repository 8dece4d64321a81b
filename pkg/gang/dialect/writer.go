package dialect

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// Writers are the dialects in which gangctl declares gangs, the most expressive first, and the one that declares none.
func Writers() []gang.Writer {
	return []gang.Writer{
		native.Writer(), schedulerplugins.Writer(), volcano.Writer(), kubebatch.Writer(), labels.Writer(),
		{Dialect: gang.None, SetGroup: func(*corev1.PodTemplateSpec, gang.Declaration, string) {}},
	}
}

// WriterOf finds the writer of a dialect; ok is false for one that is only read.
func WriterOf(d gang.Dialect) (w gang.Writer, ok bool) {
	for _, w := range Writers() {
		if w.Dialect == d {
			return w, true
		}
	}
	return gang.Writer{}, false
}
