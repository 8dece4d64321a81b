package preemption

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

// Name is the name of the plugin in a configuration file.
const Name = "GangPreemption"

// Replaces is the plugin of kube-scheduler in whose place it is.
const Replaces = "DefaultPreemption"

// Args are the arguments of the plugin GangPreemption.
type Args struct {
	// Enabled is whether gangs and pods of the profile may evict others, by
	// default true.
	Enabled bool `json:"enabled"`
	// SearchBudget is how long the search for victims may take, by default 300ms.
	// While it runs nothing else is scheduled.
	SearchBudget metav1.Duration `json:"searchBudget"`
	// TerminationTimeout is how long after the end of its grace a pod that is being
	// deleted is still expected to go, by default 5m. After that others may have to.
	TerminationTimeout metav1.Duration `json:"terminationTimeout"`
}

// DefaultArgs are the arguments where a configuration does not say otherwise.
func DefaultArgs() Args {
	return Args{
		Enabled: true, SearchBudget: metav1.Duration{Duration: 300 * time.Millisecond},
		TerminationTimeout: metav1.Duration{Duration: 5 * time.Minute},
	}
}

// The least and the most that the arguments may be.
const (
	minBudget  = 10 * time.Millisecond
	maxBudget  = 10 * time.Second
	minTimeout = time.Second
)

// ReadArgs returns the arguments in a configuration; errors name the field.
func ReadArgs(object runtime.Object) (Args, error) {
	a, err := args.Decode(object, DefaultArgs())
	if err != nil {
		return a, err
	}
	if d := a.SearchBudget.Duration; d < minBudget || d > maxBudget {
		return a, fmt.Errorf("args.searchBudget: %s is not from %s to %s", d, minBudget, maxBudget)
	}
	if d := a.TerminationTimeout.Duration; d < minTimeout {
		return a, fmt.Errorf("args.terminationTimeout: %s is less than %s", d, minTimeout)
	}
	return a, nil
}
