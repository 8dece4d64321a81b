package resize

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
)

// The names of flags, without the dashes: those of submit, so that what was typed once can be typed again.
const (
	FlagReplicas      = "replicas"
	FlagGPUs          = "gpus"
	FlagCPU           = "cpu"
	FlagMemory        = "memory"
	FlagStorage       = "ephemeral-storage"
	FlagGPUResource   = "gpu-resource"
	FlagDevice        = "device"
	FlagMinAvailable  = "min-available"
	FlagNodeSelector  = "node-selector"
	FlagToleration    = "toleration"
	FlagPriorityClass = "priority-class"
	FlagQueue         = "queue"
	FlagRecreate      = "recreate"
)

// FlagRoles are the roles that have flags of their own, as kinds spell them, those with the members that matter most first.
func FlagRoles() []string {
	return []string{"Worker", "PS", "Chief", "Master", "Evaluator", "Launcher", "Node", "Head"}
}

// FlagRole is the role, in lower case, whose flags a role has: users of JobSets and of Ray call theirs as they like, most often workers.
func FlagRole(role string) string {
	if name := strings.ToLower(role); name != "workers" {
		return name
	}
	return "worker"
}

// FlagRequests are the flags for what the members of a role request, of which each role has its own as well.
func FlagRequests() []string { return []string{FlagGPUs, FlagCPU, FlagMemory, FlagStorage} }

// CountFlag is the flag for how many members of a role there are; "" for a role whose number is fixed, or that has --replicas only.
func CountFlag(role string) string {
	switch name := FlagRole(role); name {
	case "worker":
		return "workers"
	case "node":
		return "nodes"
	case "ps", "chief", "evaluator":
		return name
	default:
		return ""
	}
}

// RoleFlag is the flag for what the members of a role request of a resource.
func RoleFlag(role, of string) string { return FlagRole(role) + "-" + of }

// Trains reports whether --gpus is for the roles of a name.
func Trains(role string) bool {
	return !slices.Contains([]string{"ps", "evaluator", "launcher", ray.Head}, strings.ToLower(role))
}

// TrainsIn reports whether --gpus is for a role of a job. Of a kind whose roles are called as users like, it is for those that request devices, where
// any does.
func TrainsIn(job *gang.Job, role gang.Role) bool {
	if job.Reader.WriteRoles != nil && slices.ContainsFunc(job.Roles, func(r gang.Role) bool { return whatif.Devices(r) > 0 }) {
		return whatif.Devices(role) > 0
	}
	return Trains(role.Name)
}

// HasReplicas reports whether --replicas changes how many members of a role of a job there are: of kinds whose roles are called as users like, any but
// the one head of Ray.
func HasReplicas(job *gang.Job, role string) bool {
	return job.Reader.WriteRoles != nil && (job.Reader.Group != ray.Group || !strings.EqualFold(role, ray.Head))
}

// countFlagIn is the flag for how many members of a role of a job there are; "" for a role that has none of its own, or shares it with another one.
func countFlagIn(job *gang.Job, role string) string {
	if Shares(job, role) {
		return ""
	}
	return CountFlag(role)
}

// Shares reports whether a role of a job has its flags in common with another one: worker and workers.
func Shares(job *gang.Job, role string) bool {
	return slices.ContainsFunc(job.Roles, func(r gang.Role) bool {
		return !strings.EqualFold(r.Name, role) && FlagRole(r.Name) == FlagRole(role)
	})
}

// Masters is how many members besides its workers a job counts among --workers: of a PyTorchJob the master, which trains like them.
func Masters(job *gang.Job) int32 {
	if job.Kind.Kind != "PyTorchJob" {
		return 0
	}
	for _, r := range job.Roles {
		if strings.EqualFold(r.Name, "master") {
			return r.Replicas
		}
	}
	return 0
}

// Command is the command that makes a change of a job, with the flags that the job's kind has, quoted for the shell; ok is false for a change
// that flags cannot make.
func Command(job *gang.Job, c Change) (line string, ok bool) {
	args, ok := Args(job, c)
	if !ok {
		return "", false
	}
	return Line(job, args), true
}

// Line is the command with some arguments, for a job of any namespace, quoted for the shell.
func Line(job *gang.Job, args []string) string {
	return shell.Join(slices.Concat([]string{"gangctl", "resize"}, args, []string{"-n", job.Meta.Namespace})...)
}

// Named is a job as KIND/NAME, for command lines: another kind may have a job of the name.
func Named(job *gang.Job) string { return job.Reader.Argument(job.Meta.Name) }

// ArgsIn are the arguments in a line that Line wrote; nil for another one.
func ArgsIn(line string) []string {
	argv, err := shell.Split(line)
	if err != nil || len(argv) < 5 || argv[0] != "gangctl" || argv[1] != "resize" || argv[len(argv)-2] != "-n" {
		return nil
	}
	return argv[2 : len(argv)-2]
}

// AsSubmitted parts flags of resize, with their values, into those that submit takes as well and those that it is enough to leave out there: the labels
// that nodes need not have any more.
func AsSubmitted(flags []string) (with, anyNode []string) {
	for i := 0; i < len(flags); i++ {
		if flags[i] != "--"+FlagNodeSelector || i+1 == len(flags) {
			with = append(with, flags[i])
			continue
		}
		i++
		if key, left := strings.CutSuffix(flags[i], "-"); left && !strings.Contains(key, "=") {
			anyNode = append(anyNode, key)
			continue
		}
		with = append(with, flags[i-1], flags[i])
	}
	return with, anyNode
}

// Args are the arguments of `gangctl resize` that make a change of a job: its name, and the flags.
func Args(job *gang.Job, c Change) (args []string, ok bool) {
	args = []string{job.Meta.Name}
	if job.SharesName {
		args[0] = Named(job)
	}
	flag := func(name, value string) { args = append(args, "--"+name, value) }
	for _, r := range c.Roles {
		if r.Replicas == nil {
			continue
		}
		name, n := countFlagIn(job, r.Name), *r.Replicas
		if name == "workers" {
			n += Masters(job)
		}
		switch none := n == 0 && name == "workers"; {
		case name != "" && !none:
			flag(name, strconv.Itoa(int(n)))
		case HasReplicas(job, r.Name):
			flag(FlagReplicas, r.Name+"="+strconv.Itoa(int(n)))
		default:
			return nil, false
		}
	}
	for _, of := range FlagRequests() {
		flags, ok := requestFlags(job, c, of)
		if !ok {
			return nil, false
		}
		for _, f := range flags {
			flag(f[0], f[1])
		}
	}
	devices, ok := c.devices(job)
	if !ok {
		return nil, false
	}
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		q := devices[name]
		flag(FlagDevice, string(name)+"="+q.String())
	}
	if device := c.device(); device != "" {
		flag(FlagGPUResource, string(device))
	}
	if c.MinAvailable > 0 {
		flag(FlagMinAvailable, strconv.Itoa(int(c.MinAvailable)))
	}
	for _, key := range slices.Sorted(maps.Keys(c.NodeSelector)) {
		flag(FlagNodeSelector, key+"="+c.NodeSelector[key])
	}
	for _, key := range c.AnyNode {
		flag(FlagNodeSelector, key+"-")
	}
	for _, t := range c.Tolerations {
		flag(FlagToleration, tolerationText(t))
	}
	if c.PriorityClass != "" {
		flag(FlagPriorityClass, c.PriorityClass)
	}
	if c.Queue != "" {
		flag(FlagQueue, c.Queue)
	}
	return args, true
}

// requestFlags are the flags for what members request of one resource, with their values: one for all members that it is meant for, where they
// request the same; ok is false for members of a role without flags of its own.
func requestFlags(job *gang.Job, c Change, of string) (flags [][2]string, ok bool) {
	values := map[string]string{}
	var own [][2]string
	named := true
	for _, r := range c.Roles {
		if value := r.requested(of); value != "" {
			values[strings.ToLower(r.Name)] = value
			own = append(own, [2]string{RoleFlag(r.Name, of), value})
			named = named && !Shares(job, r.Name) && slices.ContainsFunc(FlagRoles(), func(name string) bool { return FlagRole(name) == FlagRole(r.Name) })
		}
	}
	one := ""
	for _, r := range job.Roles {
		value := values[strings.ToLower(r.Name)]
		meant := of != FlagGPUs || TrainsIn(job, r)
		if meant && value == "" || !meant && value != "" || one != "" && meant && value != one {
			return own, named
		}
		if meant {
			one = value
		}
	}
	if one == "" {
		return nil, true
	}
	return [][2]string{{of, one}}, true
}

// requested is what the change has each member of the role request of a resource; "" for what it did before.
func (r Role) requested(of string) string {
	quantity := func(q *resource.Quantity) string {
		if q == nil {
			return ""
		}
		return q.String()
	}
	switch {
	case of == FlagCPU:
		return quantity(r.CPU)
	case of == FlagMemory:
		return quantity(r.Memory)
	case of == FlagStorage:
		return quantity(r.Storage)
	case r.GPUs == nil:
		return ""
	}
	return strconv.FormatInt(*r.GPUs, 10)
}

// device is the device that the roles name; "" if none does.
func (c Change) device() corev1.ResourceName {
	for _, r := range c.Roles {
		if r.Device != "" {
			return r.Device
		}
	}
	return ""
}

// devices are the further devices of the roles that train, for which there is one flag; ok is false if they differ, or another role's change.
func (c Change) devices(job *gang.Job) (list corev1.ResourceList, ok bool) {
	first := true
	for _, role := range job.Roles {
		has := c.role(role.Name).Devices
		switch {
		case !TrainsIn(job, role) && len(has) > 0, TrainsIn(job, role) && !first && !equality.Semantic.DeepEqual(list, has):
			return nil, false
		case TrainsIn(job, role):
			list, first = has, false
		}
	}
	return list, true
}

// tolerationText is a toleration as flags have it: KEY[=VALUE][:EFFECT], or all.
func tolerationText(t corev1.Toleration) string {
	text := t.Key
	if t.Operator == corev1.TolerationOpEqual {
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	if text == "" {
		return "all"
	}
	return text
}
