package planner

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/placement"
)

// Name is the name of the plugin in a configuration file.
const Name = "GangPlanner"

// Args are the arguments of the plugin GangPlanner.
type Args struct {
	// SearchBudget is how long the search for a placement of one gang may take, by default 200ms. A search that hits it
	// proves nothing: the engine tries the gang by itself.
	SearchBudget metav1.Duration `json:"searchBudget"`
	// RetryPeriod is after how long a gang is tried again of which it is not proven that it has no placement, though nothing
	// has changed in the cluster; by default 10s.
	RetryPeriod metav1.Duration `json:"retryPeriod"`
}

func defaultArgs() Args {
	return Args{SearchBudget: metav1.Duration{Duration: placement.DefaultBudget}, RetryPeriod: metav1.Duration{Duration: 10 * time.Second}}
}

// The least and the most that the arguments may be. While a search runs no other pod is scheduled.
const (
	minBudget = time.Millisecond
	maxBudget = 10 * time.Second
	minRetry  = time.Second
	maxRetry  = parkedAtMost
)

func (a Args) validate() error {
	if d := a.SearchBudget.Duration; d < minBudget || d > maxBudget {
		return fmt.Errorf("args.searchBudget: %s is not from %s to %s", d, minBudget, maxBudget)
	}
	if d := a.RetryPeriod.Duration; d < minRetry || d > maxRetry {
		return fmt.Errorf("args.retryPeriod: %s is not from %s to %s", d, minRetry, maxRetry)
	}
	return nil
}
