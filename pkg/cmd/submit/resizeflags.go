package submit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// ResizeFlags are the flags of submit that change a job that is there, for `gangctl resize`: those of every kind, because which it is shows
// only when the job is read.
type ResizeFlags struct {
	all   resources
	roles []*role
	// replicas are of roles that kinds let users call as they like: ROLE=N each.
	replicas []string

	gpuResource   string
	devices       []string
	minAvailable  int32
	nodeSelector  []string
	tolerations   []string
	priorityClass string
	queue         string

	flags *pflag.FlagSet
}

// NewResizeFlags adds the flags to those of a command.
func NewResizeFlags(flags *pflag.FlagSet) *ResizeFlags {
	f := &ResizeFlags{flags: flags}
	for _, name := range resize.FlagRoles() {
		f.roles = append(f.roles, &role{Name: name, count: resize.CountFlag(name), trains: resize.Trains(name), resources: resources{GPUs: unset}})
	}
	for _, r := range f.roles {
		if r.count != "" {
			low := int32(0)
			if r.count == "workers" {
				low = 1
			}
			flagvalue.Count(flags, &r.Replicas, r.count, 0, low, maxReplicas, "Number of "+plural(r)+"; as it is without the flag")
		}
	}
	flags.StringArrayVar(&f.replicas, resize.FlagReplicas, nil, "Number of members of a role ROLE=N, of a JobSet, RayCluster or RayJob (repeatable)")
	flagvalue.Count(flags, &f.all.GPUs, resize.FlagGPUs, 0, 0, maxGPUs, "GPUs of each member that trains")
	flagvalue.CPUs(flags, &f.all.CPU, resize.FlagCPU, "CPUs of each member")
	flagvalue.Bytes(flags, &f.all.Memory, resize.FlagMemory, "Memory of each member")
	flagvalue.Bytes(flags, &f.all.Storage, resize.FlagStorage, "Local disk of each member: its image's writable layer, logs and emptyDirs")
	flags.StringArrayVar(&f.devices, resize.FlagDevice, nil, "Extended resource DOMAIN/NAME=COUNT, or huge pages hugepages-SIZE=AMOUNT, of each member that --gpus is for; 0 drops it (repeatable)")
	flagvalue.Count(flags, &f.minAvailable, resize.FlagMinAvailable, 0, 1, maxMinimum, "Members that must start together (default: all, if it was all, or as it is)")
	flags.StringArrayVar(&f.nodeSelector, resize.FlagNodeSelector, nil, "Label KEY=VALUE that nodes must have, or KEY- for one that they need not have any more (repeatable)")
	flags.StringArrayVar(&f.tolerations, resize.FlagToleration, nil, "Further taint that members tolerate: KEY[=VALUE][:EFFECT], or all (repeatable)")
	flags.StringVar(&f.priorityClass, resize.FlagPriorityClass, "", "PriorityClass of the members")
	flags.StringVar(&f.queue, resize.FlagQueue, "", "Queue in which the gang waits")
	flags.StringVar(&f.gpuResource, resize.FlagGPUResource, string(resize.DefaultDevice), "Extended resource that the GPU flags count, where members do not request one yet")
	for _, r := range f.roles {
		addResourceFlags(flags, r)
	}
	return f
}

// plural is how the help calls the members of a role.
func plural(r *role) string {
	switch r.count {
	case "workers":
		return "workers; of a PyTorchJob the master counts as one"
	case "ps":
		return "parameter servers"
	case "nodes":
		return r.count
	default:
		return r.count + "s"
	}
}

// Validate refuses what no job can have, before any is read.
func (f *ResizeFlags) Validate() error {
	for _, name := range []string{resize.FlagPriorityClass, resize.FlagQueue} {
		flag := f.flags.Lookup(name)
		if flag.Changed && strings.TrimSpace(flag.Value.String()) == "" {
			return failure.Usagef("--%s is empty", name).WithHint("give it a value, or leave it out")
		}
		if err := validateObjectName(name, flag.Value.String()); err != nil {
			return err
		}
	}
	if err := refuseGPUResource(f.gpuResource); err != nil {
		return err
	}
	if f.flags.Changed(resize.FlagGPUResource) && !f.typedGPUs() {
		return failure.Usagef("--gpu-resource has no effect without a number of GPUs").WithHint("add --gpus N, or leave out --gpu-resource")
	}
	if err := refuseBytes(f.flags, nil); err != nil {
		return err
	}
	if _, err := f.parseDevices(); err != nil {
		return err
	}
	if _, err := f.parseReplicas(); err != nil {
		return err
	}
	return f.addPlace(&resize.Change{})
}

// typed are the values of a repeatable flag. Settings and GANGCTL_ variables have defaults for new jobs, which change none that is there.
func (f *ResizeFlags) typed(name string, values []string) []string {
	if !f.flags.Changed(name) {
		return nil
	}
	return values
}

// parseDevices are those of --device.
func (f *ResizeFlags) parseDevices() (corev1.ResourceList, error) {
	return parseDevices(f.typed(resize.FlagDevice, f.devices), f.gpuResource, 0)
}

// parseReplicas are the numbers of --replicas, by role in lower case.
func (f *ResizeFlags) parseReplicas() (map[string]int32, error) {
	all := map[string]int32{}
	for _, text := range f.typed(resize.FlagReplicas, f.replicas) {
		role, count, _ := strings.Cut(text, "=")
		n, err := strconv.ParseInt(count, 10, 32)
		if err != nil || role == "" || n < 0 || n > maxReplicas {
			return nil, failure.Usagef("--%s %q: must be ROLE=N, with N from 0 to %d", resize.FlagReplicas, text, maxReplicas).WithHint("for example: --%s worker=4", resize.FlagReplicas)
		}
		role = strings.ToLower(role)
		if _, twice := all[role]; twice {
			return nil, failure.Usagef("--%s has two numbers for %s", resize.FlagReplicas, role)
		}
		all[role] = int32(n)
	}
	return all, nil
}

// typedGPUs reports whether the GPUs of any role are given.
func (f *ResizeFlags) typedGPUs() bool {
	for _, r := range f.roles {
		if f.flags.Changed(resize.RoleFlag(r.Name, resize.FlagGPUs)) {
			return true
		}
	}
	return f.flags.Changed(resize.FlagGPUs)
}

// Change is the change of a job by the flags.
func (f *ResizeFlags) Change(job *gang.Job) (resize.Change, error) {
	c := resize.Change{}
	devices, err := f.parseDevices()
	if err != nil {
		return c, err
	}
	replicas, err := f.parseReplicas()
	if err != nil {
		return c, err
	}
	for _, has := range job.Roles {
		r := f.ofRole(job, has)
		if n, typed := replicas[strings.ToLower(has.Name)]; typed {
			r.Replicas = &n
		}
		if resize.TrainsIn(job, has) && len(devices) > 0 {
			r.Devices = devices
		}
		if !r.Empty() {
			c.Roles = append(c.Roles, r)
		}
	}
	if err := f.refuseReplicas(job, replicas); err != nil {
		return c, err
	}
	if err := f.refuseOthers(job); err != nil {
		return c, err
	}
	changed := f.flags.Changed
	if changed(resize.FlagMinAvailable) {
		c.MinAvailable = f.minAvailable
	}
	if changed(resize.FlagPriorityClass) {
		c.PriorityClass = f.priorityClass
	}
	if changed(resize.FlagQueue) {
		c.Queue = f.queue
	}
	return c, f.addPlace(&c)
}

// ofRole is the change of one role of a job by the flags: its own flags, and those of all members.
func (f *ResizeFlags) ofRole(job *gang.Job, has gang.Role) resize.Role {
	out, typed := resize.Role{Name: has.Name}, f.flags.Changed
	own := f.role(has.Name)
	if own == nil {
		own = &role{Name: has.Name}
	}
	if typed(own.count) {
		n := own.Replicas
		if own.count == "workers" {
			n -= resize.Masters(job)
		}
		out.Replicas = &n
	}
	switch {
	case typed(resize.RoleFlag(has.Name, resize.FlagGPUs)):
		out.GPUs = &own.GPUs
	case typed(resize.FlagGPUs) && resize.TrainsIn(job, has):
		out.GPUs = &f.all.GPUs
	}
	if out.GPUs != nil && typed(resize.FlagGPUResource) {
		out.Device = corev1.ResourceName(f.gpuResource)
	}
	out.CPU = f.quantity(has.Name, resize.FlagCPU, own.CPU, f.all.CPU)
	out.Memory = f.quantity(has.Name, resize.FlagMemory, own.Memory, f.all.Memory)
	out.Storage = f.quantity(has.Name, resize.FlagStorage, own.Storage, f.all.Storage)
	return out
}

// quantity is the amount of a resource as typed: for the role, or for all; nil for neither.
func (f *ResizeFlags) quantity(role, name string, own, all *resource.Quantity) *resource.Quantity {
	switch {
	case f.flags.Changed(resize.RoleFlag(role, name)):
		return own
	case f.flags.Changed(name):
		return all
	}
	return nil
}

// role finds the flags of a role of a job.
func (f *ResizeFlags) role(name string) *role {
	for _, r := range f.roles {
		if resize.FlagRole(r.Name) == resize.FlagRole(name) {
			return r
		}
	}
	return nil
}

// refuseReplicas refuses numbers of roles that a job does not have, or whose number another flag has or nobody changes, and a flag that is for several
// roles.
func (f *ResizeFlags) refuseReplicas(job *gang.Job, replicas map[string]int32) error {
	g, see := gang.Gang{Job: job}, fmt.Sprintf("see its roles with `gangctl get %s -n %s`", resize.Named(job), job.Meta.Namespace)
	for _, name := range slices.Sorted(maps.Keys(replicas)) {
		switch flag := resize.CountFlag(name); {
		case g.RoleByName(name) == nil:
			return failure.Usagef("--%s %s=%d: %s has no role %s", resize.FlagReplicas, name, replicas[name], job, name).WithHint("%s", see)
		case f.flags.Changed(flag):
			return failure.Usagef("--%s and --%s are both about %s", resize.FlagReplicas, flag, name).WithHint("leave out one of them")
		case resize.HasReplicas(job, name):
		case flag != "":
			return failure.Usagef("--%s %s=%d: the number of %s of %s is --%s", resize.FlagReplicas, name, replicas[name], name, job, flag)
		default:
			return failure.Usagef("--%s %s=%d: %s has one %s, always", resize.FlagReplicas, name, replicas[name], job, name)
		}
	}
	for _, role := range job.Roles {
		if !resize.Shares(job, role.Name) {
			continue
		}
		own := []string{resize.CountFlag(role.Name)}
		for _, of := range resize.FlagRequests() {
			own = append(own, resize.RoleFlag(role.Name, of))
		}
		for _, flag := range own {
			if f.flags.Changed(flag) {
				return failure.Usagef("--%s: %s has several roles that it may be about, %s among them", flag, job, role.Name).
					WithHint("how many members one has is --%s %s=N; what its members request is changed in its file", resize.FlagReplicas, role.Name)
			}
		}
	}
	return nil
}

// refuseOthers refuses flags of roles that a job does not have.
func (f *ResizeFlags) refuseOthers(job *gang.Job) error {
	for _, r := range f.roles {
		if slices.ContainsFunc(job.Roles, func(has gang.Role) bool { return resize.FlagRole(has.Name) == resize.FlagRole(r.Name) }) {
			continue
		}
		own := []string{r.count}
		for _, of := range resize.FlagRequests() {
			own = append(own, resize.RoleFlag(r.Name, of))
		}
		for _, name := range own {
			if name != "" && f.flags.Changed(name) {
				return failure.Usagef("--%s has no effect: %s has no %s", name, job, r.flag()).WithHint("see its roles with `gangctl get %s -n %s`", resize.Named(job), job.Meta.Namespace)
			}
		}
	}
	if n := resize.Masters(job); n > 0 && f.flags.Changed("workers") && f.role("worker").Replicas < n {
		return failure.Usagef("--workers %d: the master of %s is one of them", f.role("worker").Replicas, job)
	}
	return nil
}

// addPlace adds where members may run.
func (f *ResizeFlags) addPlace(c *resize.Change) error {
	if !f.flags.Changed(resize.FlagNodeSelector) && !f.flags.Changed(resize.FlagToleration) {
		return nil
	}
	var labels []string
	if f.flags.Changed(resize.FlagNodeSelector) {
		for _, text := range f.nodeSelector {
			key, without := strings.CutSuffix(text, "-")
			if !without || strings.Contains(text, "=") {
				labels = append(labels, text)
				continue
			}
			if problems := content.IsLabelKey(key); len(problems) > 0 {
				return failure.Usagef("--node-selector %q: %s", text, strings.Join(problems, "; "))
			}
			c.AnyNode = append(c.AnyNode, key)
		}
	}
	flags := podFlags{NodeSelector: labels}
	if f.flags.Changed(resize.FlagToleration) {
		flags.Tolerations = f.tolerations
	}
	place, err := flags.place(func(string) bool { return false })
	if err != nil {
		return err
	}
	c.NodeSelector, c.Tolerations = place.NodeSelector, place.Tolerations
	if err := c.Validate(); err != nil {
		return failure.Usagef("%s", fmt.Sprintf("--node-selector and --toleration: %v", err))
	}
	return nil
}
