package belowmin

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

// Args are the plugin's arguments in a KubeSchedulerConfiguration.
type Args struct {
	// BelowMin is what becomes of a gang that ran and stays below its minimum,
	// where the gang does not say it itself: hold (the default), evict or ignore.
	BelowMin Choice `json:"belowMin"`
	// Grace is how long it may stay so; by default five minutes.
	Grace metav1.Duration `json:"grace"`
	// StartGrace is how long a gang may take from its first member's binding to
	// that of as many as it needs; by default one minute. What there is of it is
	// then taken back.
	StartGrace metav1.Duration `json:"startGrace"`
}

// DefaultArgs are the arguments where a configuration does not say otherwise.
func DefaultArgs() Args {
	return Args{
		BelowMin: Hold,
		Grace:    metav1.Duration{Duration: 5 * time.Minute}, StartGrace: metav1.Duration{Duration: time.Minute},
	}
}

func decode(object runtime.Object) (Args, error) {
	a, err := args.Decode(object, DefaultArgs())
	if err != nil {
		return a, err
	}
	if !a.BelowMin.known() {
		return a, fmt.Errorf("args.belowMin: %q is none of %s, %s and %s", a.BelowMin, Hold, Evict, Ignore)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"grace", a.Grace.Duration}, {"startGrace", a.StartGrace.Duration}} {
		if d.value <= 0 {
			return a, fmt.Errorf("args.%s: %s is not a positive duration", d.field, d.value)
		}
	}
	return a, nil
}
