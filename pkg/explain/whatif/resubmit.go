package whatif

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/fit"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/snapshot"
	"github.com/gangctl/gangctl/pkg/workload"
)

// Spec is what can be changed about a job by submitting it again.
type Spec struct {
	Roles []workload.Role
	// Min is the gang's minimum; 0 keeps it in proportion: all members stay all members.
	Min int32
}

// Role finds a role by name; nil if there is none.
func (s *Spec) Role(name string) *workload.Role {
	for i := range s.Roles {
		if s.Roles[i].Name == name {
			return &s.Roles[i]
		}
	}
	return nil
}

// Resubmit is the cluster after the job was deleted and submitted again with another spec. The schedulerName that its pods
// have now stays. It is nil for a gang that no job owns: there is nothing to submit.
func Resubmit(s *snapshot.Snapshot, g *world.Gang, edit func(*Spec)) *snapshot.Snapshot {
	if g.Bare != nil {
		return nil
	}
	scheduler := g.Scheduler
	if g = current(s, g); g == nil {
		return nil
	}
	g.Scheduler = scheduler
	spec := &Spec{}
	for _, r := range g.Roles {
		r.Template = *r.Template.DeepCopy()
		if r.Template.Spec.SchedulerName == "" {
			r.Template.Spec.SchedulerName = g.Scheduler
		}
		spec.Roles = append(spec.Roles, r)
	}
	edit(spec)
	min := newMin(g, spec)
	var pods []*corev1.Pod
	for _, m := range g.Members {
		if m.Pod != nil {
			pods = append(pods, m.Pod)
		}
	}
	c := Gone(s, pods)
	if g.Kind.Group == batchv1.GroupName {
		editBatch(c, g, spec)
	} else {
		c = Edit(c, g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) { editJob(u, s, spec, min, g) })
	}
	c = editGroup(c, g, spec, min)
	return editWorkload(c, g, spec)
}

// current is the gang as the snapshot has it: something else about it may have been changed before.
func current(s *snapshot.Snapshot, g *world.Gang) *world.Gang {
	w := world.New(s)
	for _, subject := range w.Jobs() {
		if subject.Kind == g.Kind && subject.Name() == g.Name() {
			return w.Gang(subject)
		}
	}
	return nil
}

func newMin(g *world.Gang, spec *Spec) int32 {
	var total int32
	for _, r := range spec.Roles {
		total += r.Replicas
	}
	switch {
	case spec.Min > 0:
		return spec.Min
	case g.Min >= g.Total():
		return total
	}
	return min(g.Min, total)
}

// editJob writes roles and minimum into a job whose roles are a map in spec, and makes it new.
func editJob(u *unstructured.Unstructured, s *snapshot.Snapshot, spec *Spec, min int32, g *world.Gang) {
	unstructured.RemoveNestedField(u.Object, "status")
	u.SetCreationTimestamp(metav1.NewTime(s.At))
	body, _ := u.Object["spec"].(map[string]any)
	for _, value := range body {
		roles, ok := value.(map[string]any)
		if !ok {
			continue
		}
		for _, r := range spec.Roles {
			role, ok := roles[r.Name].(map[string]any)
			if !ok {
				continue
			}
			role["replicas"] = int64(r.Replicas)
			if template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&r.Template); err == nil {
				role["template"] = template
			}
		}
	}
	if g.MinMember != nil {
		path := []string{"spec", "runPolicy", "schedulingPolicy", "minAvailable"}
		if _, ok, _ := unstructured.NestedMap(u.Object, "spec", "runPolicy"); !ok {
			path = slices.Delete(path, 1, 2)
		}
		Set(u, int64(min), path...)
	}
}

func editBatch(c *snapshot.Snapshot, g *world.Gang, spec *Spec) {
	for i, j := range c.Jobs {
		if j.Namespace != g.Meta.Namespace || j.Name != g.Meta.Name || len(spec.Roles) != 1 {
			continue
		}
		j = j.DeepCopy()
		j.Status, j.CreationTimestamp = batchv1.JobStatus{}, metav1.NewTime(c.At)
		j.Spec.Template, j.Spec.Parallelism = spec.Roles[0].Template, &spec.Roles[0].Replicas
		if j.Spec.Completions != nil {
			j.Spec.Completions = &spec.Roles[0].Replicas
		}
		c.Jobs[i] = j
	}
}

// editGroup makes the gang object new: another minimum, what these members need, no status.
func editGroup(s *snapshot.Snapshot, g *world.Gang, spec *Spec, min int32) *snapshot.Snapshot {
	if g.Decl == nil || g.Decl.Kind.Kind == "" || g.Decl.Kind.Group == "policy" {
		return s
	}
	return Edit(s, g.Decl.Kind.GroupKind(), g.Decl.Key.Namespace, g.Decl.Key.Name, func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "status")
		if g.Decl.Key.Dialect == gang.Native {
			Set(u, int64(min), "spec", "schedulingPolicy", "gang", "minCount")
			return
		}
		Set(u, int64(min), "spec", "minMember")
		if g.Decl.MinResources != nil {
			resources := map[string]any{}
			for name, q := range Needs(spec.Roles, min) {
				resources[string(name)] = q.String()
			}
			Set(u, resources, "spec", "minResources")
		}
	})
}

// Needs is what the first min members ask for together, in the order of the roles.
func Needs(roles []workload.Role, min int32) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, r := range roles {
		count := r.Replicas
		if min < count {
			count = min
		}
		min -= count
		for name, q := range fit.Request(&corev1.Pod{Spec: *defaulted(r.Template.Spec)}) {
			total := sum[name]
			for range count {
				total.Add(q)
			}
			if !total.IsZero() {
				sum[name] = total
			}
		}
	}
	return sum
}

// defaulted fills in requests from limits, as the API server does.
func defaulted(spec corev1.PodSpec) *corev1.PodSpec {
	c := spec.DeepCopy()
	for _, list := range [][]corev1.Container{c.InitContainers, c.Containers} {
		for i := range list {
			r := &list[i].Resources
			for name, q := range r.Limits {
				if _, ok := r.Requests[name]; !ok {
					if r.Requests == nil {
						r.Requests = corev1.ResourceList{}
					}
					r.Requests[name] = q
				}
			}
		}
	}
	return c
}

// editWorkload makes Kueue's Workload of the job new.
func editWorkload(s *snapshot.Snapshot, g *world.Gang, spec *Spec) *snapshot.Snapshot {
	c := s.Clone()
	list := c.Custom[kueue.Kind("Workload")]
	for i, u := range list {
		ref := metav1.GetControllerOf(u)
		if ref == nil || ref.UID != g.Meta.UID {
			continue
		}
		u = u.DeepCopy()
		unstructured.RemoveNestedField(u.Object, "status")
		sets, _, _ := unstructured.NestedSlice(u.Object, "spec", "podSets")
		for _, item := range sets {
			set, ok := item.(map[string]any)
			if !ok {
				continue
			}
			for _, r := range spec.Roles {
				if name, _ := set["name"].(string); !strings.EqualFold(name, r.Name) && len(sets) > 1 {
					continue
				}
				set["count"] = int64(r.Replicas)
				if template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&r.Template); err == nil {
					set["template"] = template
				}
			}
		}
		Set(u, sets, "spec", "podSets")
		list[i] = u
	}
	return c
}

// Scale multiplies every amount of a list by num/den, rounded up to whole units of the resource.
func Scale(list corev1.ResourceList, num, den int64) {
	for name, q := range list {
		amount := fit.Amount(name, q)
		list[name] = fit.Quantity(name, (amount*num+den-1)/den)
	}
}

// Limit is a quantity in a list of its own.
func Limit(key corev1.ResourceName, q resource.Quantity) corev1.ResourceList {
	return corev1.ResourceList{key: q}
}
