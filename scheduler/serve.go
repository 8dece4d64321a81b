package scheduler

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// serve adds a profile for each of the names, with the plugins of the first
// profile. The names come from the --serve flag, which the errors name.
func serve(profiles []schedulerconfig.KubeSchedulerProfile, names []string) ([]schedulerconfig.KubeSchedulerProfile, error) {
	profiles = slices.Clone(profiles)
	seen := map[string]bool{}
	for _, name := range names {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return nil, fmt.Errorf("--serve %q: %s", name, problems[0])
		}
		switch {
		case name == corev1.DefaultSchedulerName:
			// Every cluster has one, and nothing but its lease keeps it from
			// binding: what we leave it would place pods into our gangs' room, and
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
