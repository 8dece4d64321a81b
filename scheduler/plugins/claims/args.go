package claims

import (
	"fmt"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

// Args are the arguments of the plugin GangClaims.
type Args struct {
	// ForeignNames is whether what the scheduler writes into a namespace (conditions, events, published answers, annotations) names
	// gangs, jobs, pods and namespaces other than its own, by default false: then their kind, size and priority are written.
	ForeignNames bool `json:"foreignNames"`
}

// DefaultArgs are the arguments where a configuration sets none.
func DefaultArgs() Args { return Args{} }

// Validate implements args.Args.
func (a Args) Validate() error { return nil }

// Names is the policy of a scheduler with these profiles. A text is read by the users of all of them, so all have to allow names.
func Names(profiles []schedulerconfig.KubeSchedulerProfile) (audience.Policy, error) {
	names := len(profiles) > 0
	for _, profile := range profiles {
		a := DefaultArgs()
		for _, config := range profile.PluginConfig {
			if config.Name != Name {
				continue
			}
			var err error
			if a, err = args.Decode(config.Args, a); err != nil {
				return audience.Hidden, fmt.Errorf("profile %s: plugin %s: %w", profile.SchedulerName, Name, err)
			}
		}
		names = names && a.ForeignNames
	}
	return audience.Policy(names), nil
}
