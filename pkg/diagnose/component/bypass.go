package component

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/setup/argv"
	"github.com/gangctl/gangctl/pkg/setup/imagename"
)

// Bypass is how members of a gang are placed one by one, although something declares them a gang.
type Bypass struct {
	// Group is what declares, or was meant to declare, the gang; Unnamed is true if no pod names it, and Undeclared if nothing declares the gang: Group is what its scheduler
	// made.
	Group               gang.Declaration
	Unnamed, Undeclared bool
	// Placed are the schedulers that have placed members and do not count them for the group, Waiting those that members wait for; sorted.
	Placed, Waiting []string
}

// BypassOf finds members that a scheduler places one by one; ok is false if there are none.
func BypassOf(v *view.View, g *gang.Gang) (b Bypass, ok bool) {
	switch meant := g.Meant(); {
	case meant != nil:
		b.Group, b.Unnamed = *meant, !Names(g, *meant)
	case g.Decl != nil:
		b.Group, b.Undeclared = *g.Decl, g.OfScheduler
	default:
		return b, false
	}
	by, placed, waiting := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range g.Members {
		if m.Pod == nil || m.State == gang.Succeeded || m.State == gang.Failed {
			continue
		}
		name := gang.SchedulerName(m.Pod)
		bypasses, known := by[name]
		if !known && !b.Unnamed && !b.Undeclared && len(by) == MaxSchedulers {
			continue
		}
		if !known {
			bypasses = b.by(v, g, name)
			by[name] = bypasses
		}
		switch {
		case !bypasses:
		case m.Pod.Spec.NodeName != "":
			placed[name] = true
		default:
			waiting[name] = true
		}
	}
	b.Placed, b.Waiting = slices.Sorted(maps.Keys(placed)), slices.Sorted(maps.Keys(waiting))
	return b, len(placed)+len(waiting) > 0
}

// by reports whether a scheduler places members one by one.
func (b Bypass) by(v *view.View, g *gang.Gang, scheduler string) bool {
	switch {
	case b.Unnamed || b.Undeclared:
		return true
	case g.OfScheduler || g.Decl == nil:
		return !Reads(v, b.Group.Key.Dialect, scheduler)
	}
	return bypassedBy(v, g, scheduler)
}

// Names reports whether the pods of a gang name a group.
func Names(g *gang.Gang, d gang.Declaration) bool {
	reader, ok := dialect.ReaderOf(d.Key.Dialect)
	return ok && slices.ContainsFunc(g.ExistingPods(), func(pod *corev1.Pod) bool {
		name, named := reader.GroupOf(pod)
		return named && name == d.Key.Name
	})
}

// Alongside reports whether the scheduler of a gang places it at once with others that what declares it names, as Koordinator does until all of them have been placed once.
func Alongside(v *view.View, g *gang.Gang) bool {
	return g.Decl != nil && len(g.Decl.Alongside) > 0 && g.Count(gang.Starting, gang.Running, gang.Succeeded) == 0 && !Ours(v, g.Scheduler) && !Bypassed(v, g)
}

// Bypassed reports whether the members that wait, or are to be made, use a scheduler that does not read what declares their gang.
func Bypassed(v *view.View, g *gang.Gang) bool {
	return g.Decl != nil && bypassedBy(v, g, g.Scheduler)
}

// bypassedBy reports whether a scheduler places the members of a declared gang one by one.
func bypassedBy(v *view.View, g *gang.Gang, scheduler string) bool {
	d, flag := g.Decl, OperatorScheduler(v, g)
	reader, named := dialect.ReaderOf(d.Key.Dialect)
	switch {
	case d.Key.Dialect == gang.Kueue:
		return false
	case d.Key.Dialect == gang.Native && scheduler == corev1.DefaultSchedulerName:
		return flag != "" && flag != scheduler || NativeOff(v)
	case d.Key.Dialect == gang.SchedulerPlugins && byOldLabel(g) && !IsOurs(v, scheduler) && renamed(v, d, scheduler):
		return true
	case Reads(v, d.Key.Dialect, scheduler):
		return false
	case flag != "":
		return flag != scheduler
	}
	for _, e := range v.EventsAbout(g.Kind.GroupKind(), &g.Meta) {
		if strings.HasSuffix(e.Reason, "PodTemplateSchedulerName") {
			return true
		}
	}
	if named && !reader.Implied && readsOther(v, g, reader, scheduler) {
		return true
	}
	if scheduler != corev1.DefaultSchedulerName {
		return false
	}
	switch d.Key.Dialect {
	case gang.Labels, gang.YuniKorn:
		return len(ReaderUnknown(v, d.Key.Dialect, scheduler)) == 0 && !(d.Key.Dialect == gang.Labels && onACK(v))
	case gang.SchedulerPlugins: // which is a plugin of it in many clusters
		return false
	default:
		return d.Kind.Kind != ""
	}
}

// byOldLabel reports whether the pods of a gang name its group by the label that scheduler-plugins read before its API group had another name.
func byOldLabel(g *gang.Gang) bool {
	pods := g.ExistingPods()
	return len(pods) > 0 && schedulerplugins.GroupOfLabel(pods[0]) != "" && schedulerplugins.GroupOfLabel(pods[0]) != schedulerplugins.GVK().Group
}

// renamed reports whether a scheduler reads another label now than the one by which pods name a group: by its release, or else by the API group of that.
func renamed(v *view.View, d *gang.Declaration, scheduler string) bool {
	old, known := beforeRename(v, scheduler)
	return !old && (known || d.Kind.Group == schedulerplugins.GVK().Group)
}

// beforeRename reports whether the program that serves a schedulerName here is a release of scheduler-plugins of that time, v0.23 and before; known is false where that
// is not seen.
func beforeRename(v *view.View, scheduler string) (old, known bool) {
	for _, d := range FindScheduler(v, scheduler, "").Deployments {
		image := d.Spec.Template.Spec.Containers[serving(d, scheduler)].Image
		_, release, found := strings.Cut(image, "scheduler-plugins/kube-scheduler:v0.")
		minor, _, _ := strings.Cut(release, ".")
		if n, err := strconv.Atoi(minor); found && err == nil {
			return n < 24, true
		}
	}
	return false, false
}

// readsOther reports whether a scheduler is known to read another dialect than the gang's, in which its pods name no group. KAI's makes gangs of what it
// knows of Kubernetes' own; gangctl's reads nearly all.
func readsOther(v *view.View, g *gang.Gang, reader gang.Reader, scheduler string) bool {
	if dialect.Affinity(reader, scheduler) >= 0 || IsOurs(v, scheduler) || len(g.ExistingPods()) == 0 {
		return false
	}
	pod := g.ExistingPods()[0]
	return !slices.ContainsFunc(dialect.Readers(), func(other gang.Reader) bool {
		_, names := other.GroupOf(pod)
		return dialect.Affinity(other, scheduler) > 0 && (names || other.Adopts)
	})
}

// ReadBy is a scheduler that reads what declares a gang: the one that its operator gives to gangs, or else one that members name, or the usual one of the dialect.
func (b Bypass) ReadBy(v *view.View, g *gang.Gang) string {
	if name := OperatorScheduler(v, g); name != "" {
		return name
	}
	tried := map[string]bool{}
	for _, m := range g.Members {
		if m.Pod == nil || tried[gang.SchedulerName(m.Pod)] || len(tried) == MaxSchedulers {
			continue
		}
		name := gang.SchedulerName(m.Pod)
		if tried[name] = true; !b.by(v, g, name) {
			return name
		}
	}
	reader, _ := dialect.ReaderOf(b.Group.Key.Dialect)
	for _, name := range reader.Schedulers {
		if !Unseen(v, g, name) {
			return name
		}
	}
	for _, name := range append(SchedulerNames(v, g.Meta.Namespace), reader.Schedulers...) {
		if Reads(v, b.Group.Key.Dialect, name) {
			return name
		}
	}
	return string(b.Group.Key.Dialect)
}

// ReaderUnknown are the resources that may not be listed and would show whether the default scheduler reads a dialect: what runs under its name, and whose nodes these are. What
// cannot be seen must not pass for what is not there.
func ReaderUnknown(v *view.View, d gang.Dialect, scheduler string) (resources []string) {
	if scheduler != corev1.DefaultSchedulerName || d != gang.Labels && d != gang.YuniKorn {
		return nil
	}
	needed := []string{"deployments.apps"}
	if d == gang.Labels {
		needed = append(needed, "nodes")
	}
	return slices.DeleteFunc(needed, func(resource string) bool { return v.Snap.CanList(resource, "") })
}

// onACK reports whether nodes are those of Alibaba's Kubernetes service, whose default scheduler reads gangs that labels declare.
func onACK(v *view.View) bool {
	type ack struct{}
	return view.Once(v, ack{}, func() bool {
		return slices.ContainsFunc(v.Snap.Nodes, func(n *corev1.Node) bool {
			return slices.ContainsFunc(slices.Collect(maps.Keys(n.Labels)), func(key string) bool {
				return strings.Contains(key, "alibabacloud.com/") || strings.HasPrefix(key, "ack.aliyun.com")
			})
		})
	})
}

// NativeOff reports whether kube-scheduler is seen to run without the feature gate by which it reads PodGroups of Kubernetes. They are off by default in the
// versions that are known, and its own pod shows its flags.
func NativeOff(v *view.View) bool {
	type native struct{}
	return view.Once(v, native{}, func() bool {
		seen := false
		for _, pod := range v.Snap.Pods {
			if pod.Namespace != "kube-system" || pod.Labels["component"] != "kube-scheduler" {
				continue
			}
			for _, c := range pod.Spec.Containers {
				if imagename.Base(c.Image) != "kube-scheduler" || !offByDefault(c.Image) {
					continue
				}
				gates := argv.List(c, "feature-gates")
				if slices.ContainsFunc(nativeGates(), func(on string) bool { return slices.Contains(gates, on+"=true") }) {
					return false
				}
				seen = true
			}
		}
		return seen
	})
}

// nativeGates are those one of which switches PodGroups on.
func nativeGates() []string {
	return []string{"GenericWorkload", "GangScheduling", "AllAlpha", "AllBeta"}
}

// offByDefault reports whether an image of kube-scheduler is of a version in which they are.
func offByDefault(image string) bool {
	_, tag := imagename.Split(image)
	return slices.ContainsFunc([]string{"v1.35.", "v1.36.", "v1.37."}, func(version string) bool { return strings.HasPrefix(tag, version) })
}
