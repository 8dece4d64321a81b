package binding

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

// Args are the plugin's arguments in a KubeSchedulerConfiguration.
type Args struct {
	// Timeout is how long a member that is ready to be bound waits for the others
	// to get there; by default five minutes.
	Timeout metav1.Duration `json:"timeout"`
}

// DefaultArgs are the arguments where a configuration does not say otherwise.
func DefaultArgs() Args { return Args{Timeout: metav1.Duration{Duration: 5 * time.Minute}} }

func decode(object runtime.Object) (Args, error) {
	a, err := args.Decode(object, DefaultArgs())
	if err != nil {
		return a, err
	}
	if a.Timeout.Duration <= 0 {
		return a, fmt.Errorf("args.timeout: %s is not a positive duration (to wait for nobody, disable plugin %s)", a.Timeout.Duration, Name)
	}
	return a, nil
}
