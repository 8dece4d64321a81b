package operator

import (
	"fmt"
	"strings"

	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// The flags that make releases create gangs.
const (
	enableFlag    = "enable-gang-scheduling"
	schedulerFlag = "gang-scheduler-name"
)

// Volcano is the scheduler whose own format operators write from v1.0.1 on.
const Volcano = "volcano"

// Mode is whether and how an operator makes gangs.
type Mode struct {
	// On is true if it creates a group for every job.
	On bool
	// Scheduler is the name that it gives to pods that have none; empty if it leaves them alone.
	Scheduler string
	// Group is the API group of the groups that it creates; "policy" for PodDisruptionBudgets.
	Group string
	// Problem is what is wrong with the flags; empty if nothing is.
	Problem string
}

// Mode reads the operator's flags as its release does.
func (o Operator) Mode() Mode {
	_, old := argv.Last(o.Container(), enableFlag)
	enabled := truth(argv.Last(o.Container(), enableFlag))
	name, named := argv.Last(o.Container(), schedulerFlag)
	if !o.certain() { // only releases before v1.6 accept the older flag
		o.Release = Release{Major: 1, Minor: 9, Patch: -1}
		if old {
			o.Release = Release{Major: 1, Minor: 5, Patch: -1}
		}
	}
	r := o.Release
	switch {
	case r.Before(1, 6):
		m := o.Render(name)
		m.On = enabled
		if named && !enabled && name != "" {
			m.Problem = fmt.Sprintf("--%s has no effect without --%s", schedulerFlag, enableFlag)
		}
		return m
	case name == "" || strings.EqualFold(name, "none"):
		m := Mode{}
		if enabled {
			m.Problem = fmt.Sprintf("--%s has no effect in %s, which wants --%s=NAME", enableFlag, r, schedulerFlag)
		}
		return m
	}
	m := o.Render(name)
	m.On = true
	return m
}

// certain reports whether the release's flags for gangs are known.
func (o Operator) certain() bool {
	return o.Release.Known() && (!o.Release.Guessed || !o.Release.Before(1, 7))
}

// Render is the group that the release would make of a gang with the flags for the given gang scheduler.
func (o Operator) Render(name string) Mode {
	r := o.Release
	switch {
	case !r.Known():
	case r.Before(0, 5):
		return Mode{Group: "policy"}
	case r.Before(1, 0):
		return Mode{Group: "scheduling.incubator.k8s.io", Scheduler: "kube-batch"}
	case r.Before(1, 6):
		return Mode{Group: "scheduling.volcano.sh", Scheduler: Volcano}
	case r.Before(1, 7) && !strings.EqualFold(name, Volcano):
		return Mode{Group: "scheduling.sigs.k8s.io"} // its pods keep the default scheduler
	}
	if strings.EqualFold(name, Volcano) {
		return Mode{Group: "scheduling.volcano.sh", Scheduler: Volcano}
	}
	return Mode{Group: "scheduling.x-k8s.io", Scheduler: name}
}

// Flags are those that make the release create gangs for a scheduler; an error if it cannot. Releases before v1.6 support their own
// scheduler only, and v1.6 treats every scheduler but Volcano as scheduler-plugins.
func (o Operator) Flags(scheduler string) ([]string, error) {
	r := o.Release
	switch {
	case !o.certain():
		return nil, fmt.Errorf("how the training operator of Deployment %s is configured to create gangs depends on its release, and it is %s", o.Name(), r)
	case r.Before(1, 6):
		if want := o.Render("").Scheduler; want != "" && want != scheduler {
			return nil, fmt.Errorf("training operator %s makes gangs for scheduler %s only, not for %s", r, want, scheduler)
		}
		return []string{"--" + enableFlag + "=true"}, nil
	case r.Before(1, 7) && !strings.EqualFold(scheduler, Volcano):
		return nil, fmt.Errorf("training operator %s leaves the scheduler of pods alone and writes groups of scheduling.sigs.k8s.io; %s would not see them", r, scheduler)
	}
	return []string{"--" + schedulerFlag + "=" + scheduler}, nil
}

// truth reads a boolean flag: named without a value, it is true.
func truth(value string, given bool) bool {
	switch strings.ToLower(value) {
	case "", "true", "t", "1":
		return given
	}
	return false
}
