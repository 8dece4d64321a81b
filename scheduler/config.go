package scheduler

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"sigs.k8s.io/yaml"
)

// How many requests a second the scheduler sends to the API server at most, and
// at once, unless its configuration sets others.
const (
	clientQPS   = 1000
	clientBurst = 2000
)

// defaultConfig is kube-scheduler's default configuration under our own name,
// so that the two never take each other's pods or lease.
func defaultConfig() (*schedulerconfig.KubeSchedulerConfiguration, error) {
	cfg, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("default configuration: %w", err)
	}
	cfg.Profiles[0].SchedulerName = DefaultName
	// A gang of 100 would otherwise take two seconds to be bound. API servers
	// look after themselves (priority and fairness).
	cfg.ClientConnection.QPS, cfg.ClientConnection.Burst = clientQPS, clientBurst
	cfg.LeaderElection.ResourceName = DefaultName
	cfg.LeaderElection.ResourceNamespace = DefaultNamespace
	return cfg, nil
}

func profileNames(profiles []schedulerconfig.KubeSchedulerProfile) []string {
	names := make([]string, 0, len(profiles))
	for _, p := range profiles {
		names = append(names, p.SchedulerName)
	}
	return names
}

// configurationIn reads a configuration file.
func configurationIn(logger klog.Logger, file string) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	cfg, err := options.LoadConfigFromFile(logger, file)
	if err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", file, err)
	}
	return cfg, nil
}

// ownLease keeps a configuration file that has nothing on leader election
// from making us wait indefinitely for the lease that kube-scheduler holds.
func ownLease(logger klog.Logger, opts *options.Options) error {
	if opts.ConfigFile == "" {
		return nil
	}
	cfg, err := configurationIn(logger, opts.ConfigFile)
	if err != nil {
		return err
	}
	upstreams, err := latest.Default()
	if err != nil {
		return fmt.Errorf("default configuration: %w", err)
	}
	lease, theirs := cfg.LeaderElection, upstreams.LeaderElection
	if lease.ResourceName != theirs.ResourceName || lease.ResourceNamespace != theirs.ResourceNamespace {
		return nil
	}
	flags := opts.Flags.FlagSet("leader election")
	for flag, value := range map[string]string{
		"leader-elect-resource-name":      DefaultName,
		"leader-elect-resource-namespace": DefaultNamespace,
	} {
		if flags.Changed(flag) {
			continue
		}
		if err := flags.Set(flag, value); err != nil {
			return fmt.Errorf("set --%s: %w", flag, err)
		}
	}
	return nil
}

// ownProfile has the profile to which a configuration file gives no name answer to ours. Upstream's defaults would call it
// default-scheduler, which is kube-scheduler's name, and two schedulers of one name bind the same pods: that one has to be written.
func ownProfile(logger klog.Logger, file string, profiles []schedulerconfig.KubeSchedulerProfile) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	var written struct {
		Profiles []struct {
			SchedulerName string `json:"schedulerName"`
		} `json:"profiles"`
	}
	if err := yaml.Unmarshal(text, &written); err != nil {
		return fmt.Errorf("read configuration %s: %w", file, err)
	}
	for i := range profiles {
		named := i < len(written.Profiles) && written.Profiles[i].SchedulerName != ""
		switch {
		case profiles[i].SchedulerName != corev1.DefaultSchedulerName:
		case named:
			logger.Info("Serving the name of kube-scheduler, which must not run alongside this scheduler", "schedulerName", corev1.DefaultSchedulerName)
		default:
			profiles[i].SchedulerName = DefaultName
		}
	}
	return nil
}

// addProfiles adds a profile for each of the names, with the plugins of the first
// profile. The names come from the --serve flag, which the errors name.
func addProfiles(profiles []schedulerconfig.KubeSchedulerProfile, names []string) ([]schedulerconfig.KubeSchedulerProfile, error) {
	profiles = slices.Clone(profiles)
	seen := map[string]bool{}
	for _, name := range names {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return nil, fmt.Errorf("--serve %q: %s", name, problems[0])
		}
		switch {
		case name == corev1.DefaultSchedulerName:
			// Every cluster has one, and nothing but its lease keeps it from
			// binding: what we leave it would place pods into what our gangs have claimed, and
			// what it takes would be half of a gang.
			return nil, fmt.Errorf("--serve %s: kube-scheduler answers to that name, and two schedulers of one name bind the same pods; to replace it, stop it and name the profile in a --config file", name)
		case seen[name]:
			return nil, fmt.Errorf("--serve %s: given twice", strings.Join(names, ","))
		}
		seen[name] = true
		if slices.ContainsFunc(profiles, func(p schedulerconfig.KubeSchedulerProfile) bool { return p.SchedulerName == name }) {
			return nil, fmt.Errorf("--serve %s: the configuration has a profile of that name", name)
		}
		if len(profiles) > 0 {
			profile := *profiles[0].DeepCopy()
			profile.SchedulerName = name
			profiles = append(profiles, profile)
		}
	}
	return profiles, nil
}

// filterTimeout is how long the engine looks for the devices of one pod on one node, unless the configuration sets it. Upstream's 10 s are as
// long as nothing else is scheduled.
const filterTimeout = 250 * time.Millisecond

// limitDeviceSearch sets that where a profile has upstream's default.
func limitDeviceSearch(profiles []schedulerconfig.KubeSchedulerProfile) {
	for _, profile := range profiles {
		for _, c := range profile.PluginConfig {
			a, ok := c.Args.(*schedulerconfig.DynamicResourcesArgs)
			if ok && a.FilterTimeout != nil && a.FilterTimeout.Duration == schedulerv1.DynamicResourcesFilterTimeoutDefault {
				a.FilterTimeout = &metav1.Duration{Duration: filterTimeout}
			}
		}
	}
}
