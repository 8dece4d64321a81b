// Package dialect knows every gang format that gangctl reads, and which of several counts for a pod.
package dialect

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/koordinator"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/dialect/yunikorn"
)

// Readers are the dialects, the more specific ones first.
func Readers() []gang.Reader {
	return []gang.Reader{
		native.Reader(), schedulerplugins.Reader(), volcano.Reader(), kubebatch.Reader(), koordinator.Reader(), kai.Reader(),
		yunikorn.Reader(), labels.Reader(), kueue.Reader(),
	}
}

// Affinity says how likely a scheduler reads a dialect: 1 if it is known to, -1 if it is known to read another one only, 0
// if nothing is known.
func Affinity(r gang.Reader, schedulerName string) int {
	if slices.Contains(r.Schedulers, schedulerName) {
		return 1
	}
	if schedulerName == corev1.DefaultSchedulerName || schedulerName == "" {
		return 0 // many clusters replace the default scheduler by one that reads gangs
	}
	for _, other := range Readers() {
		if slices.Contains(other.Schedulers, schedulerName) {
			return -1
		}
	}
	return 0
}
