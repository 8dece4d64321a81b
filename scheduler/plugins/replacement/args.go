package replacement

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

// Args are the plugin's arguments in a KubeSchedulerConfiguration.
type Args struct {
	// HoldTTL is how long the place of a dead member is kept for its
	// replacement, counted from its death. The default is two minutes.
	HoldTTL metav1.Duration `json:"holdTTL"`
}

// DefaultArgs are the arguments where a configuration does not say otherwise.
func DefaultArgs() Args { return Args{HoldTTL: metav1.Duration{Duration: 2 * time.Minute}} }

func decode(object runtime.Object) (Args, error) {
	a, err := args.Decode(object, DefaultArgs())
	if err != nil {
		return a, err
	}
	if a.HoldTTL.Duration <= 0 {
		return a, fmt.Errorf("args.holdTTL: %s is not a positive duration (to hold nothing, disable plugin %s)", a.HoldTTL.Duration, Name)
	}
	return a, nil
}
