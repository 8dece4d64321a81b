package whatif

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Resubmit is the cluster after the job was deleted and submitted again with another spec. The schedulerName that its pods
// have now stays, and so does what is injected into them. Of a gang that no job owns, whoever made the pods makes them again. It is nil where that cannot be, and while a pod of the gang does not
// go, for which any change waits.
func Resubmit(s *snapshot.Snapshot, g *gang.Gang, edit func(*Spec)) *snapshot.Snapshot {
	if g.Bare != nil {
		return remade(s, g, edit)
	}
	scheduler := g.Scheduler
	w := view.New(s)
	if g = current(s, g); g == nil || slices.ContainsFunc(g.ExistingPods(), w.Stuck) {
		return nil
	}
	spec := Revise(g, edit)
	for i := range spec.Roles {
		if template := &spec.Roles[i].Template.Spec; template.SchedulerName == "" {
			template.SchedulerName = scheduler
		}
	}
	c := Gone(s, slices.Concat(g.ExistingPods(), w.Replaced(g)))
	c.Injected = w.StillInjected(g)
	if g.Kind.Group == batchv1.GroupName {
		editBatch(c, g, spec)
	} else {
		c = Edit(c, g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) { editJob(u, s, spec, g) })
	}
	if makes, ok := kinds.ByKind(g.Reader.Makes); ok && g.Made != nil { // the controller makes it again
		c = Edit(c, makes.GroupKind, g.Meta.Namespace, g.MadeAs, func(u *unstructured.Unstructured) { makes.WriteRoles(u, spec.Roles) })
	}
	return editWorkload(editGroup(c, g, spec), g, spec)
}

// current is the gang as the snapshot has it: something else about it may have been changed before.
func current(s *snapshot.Snapshot, g *gang.Gang) *gang.Gang {
	if g.Source == s {
		return g
	}
	w := view.New(s)
	if job := w.Lookup(g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name); job != nil {
		return w.Gang(job)
	}
	return nil
}

// againAt is when an object is made again, which is after it was made: times of creation are whole seconds, and it may have been made in this one.
func againAt(s *snapshot.Snapshot, was metav1.Object) metav1.Time {
	first := was.GetCreationTimestamp().Add(time.Second)
	if first.Before(s.At) {
		first = s.At
	}
	return metav1.NewTime(first)
}

// editJob writes roles and minimum into a job whose roles are a map in spec, or of a kind that writes them itself, and makes it new.
func editJob(u *unstructured.Unstructured, s *snapshot.Snapshot, spec *Spec, g *gang.Gang) {
	unstructured.RemoveNestedField(u.Object, "status")
	u.SetCreationTimestamp(againAt(s, u))
	body, _ := u.Object["spec"].(map[string]any)
	if write := g.Reader.WriteRoles; write != nil {
		write(u, spec.Roles)
		body = nil
	}
	for _, value := range body {
		roles, ok := value.(map[string]any)
		if !ok {
			continue
		}
		for _, r := range spec.Roles {
			role, ok := roles[r.Name].(map[string]any)
			if !ok {
				if role = further(roles, g, r); role == nil {
					continue
				}
				roles[r.Name] = role
			}
			role["replicas"] = int64(r.Replicas)
			if template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&r.Template); err == nil {
				role["template"] = template
			}
		}
	}
	for _, f := range policyFields(u, g, spec) {
		Set(u, f.value, f.path...)
	}
	enqueue(u, g, spec)
}

// enqueue writes another queue of Kueue into the metadata of a job that waits in one.
func enqueue(job metav1.Object, g *gang.Gang, spec *Spec) {
	if newQueue(g, spec) == "" {
		return
	}
	labels := maps.Clone(job.GetLabels())
	labels[kueue.QueueLabel] = spec.Queue
	job.SetLabels(labels)
}

// newQueue is the queue of Kueue to which an edit moves a job; empty if it stays, or is in none.
func newQueue(g *gang.Gang, spec *Spec) string {
	if was := g.Meta.Labels[kueue.QueueLabel]; was == "" || was == spec.Queue {
		return ""
	}
	return spec.Queue
}

// policyFields are a job's own fields about the gang that its operator is to declare, where an edit changes them: in its
// run policy, or next to it before there was one.
func policyFields(u *unstructured.Unstructured, g *gang.Gang, spec *Spec) []field {
	if u == nil || g.Reader.WriteRoles != nil { // which have no such fields
		return nil
	}
	path := []string{"spec", "runPolicy", "schedulingPolicy"}
	_, current, _ := unstructured.NestedMap(u.Object, "spec", "runPolicy")
	if _, early, _ := unstructured.NestedMap(u.Object, "spec", "schedulingPolicy"); early && !current {
		path = []string{"spec", "schedulingPolicy"}
	}
	derived := spec.Derived || DeclaredByOperator(g)
	at := func(name string) []string { return append(slices.Clone(path), name) }
	var fields []field
	if _, ok, _ := unstructured.NestedMap(u.Object, path...); (ok || derived) && spec.PriorityClass != "" && spec.PriorityClass != g.PriorityClass {
		fields = append(fields, field{at("priorityClass"), spec.PriorityClass})
	}
	if (g.Job.Queue != "" || derived) && spec.Queue != "" && spec.Queue != g.Job.Queue {
		fields = append(fields, field{at("queue"), spec.Queue})
	}
	if g.MinMember != nil && *g.MinMember != spec.Min || g.MinMember == nil && derived && (spec.Derived || spec.Min != g.Min) && spec.Min != spec.total() { // all members is what an operator takes by itself
		fields = append(fields, field{at("minAvailable"), int64(spec.Min)})
	}
	if _, ok, _ := unstructured.NestedMap(u.Object, at("minResources")...); ok {
		before, after := texts(Needs(g.Roles, g.Min)), texts(Needs(spec.Roles, spec.Min))
		if !reflect.DeepEqual(before, after) {
			fields = append(fields, field{at("minResources"), after})
		}
	}
	return fields
}

// DeclaredByOperator reports whether the operator of the job made the object that declares its gang, from what the job specifies: it would make it so
// again.
func DeclaredByOperator(g *gang.Gang) bool {
	return g.Kind.Group != batchv1.GroupName && g.Decl != nil && !g.OfScheduler && g.Decl.Kind.Kind != "" && g.Decl.Owner != "" && g.Decl.Owner == g.Meta.UID
}

func editBatch(c *snapshot.Snapshot, g *gang.Gang, spec *Spec) {
	for i, j := range c.Jobs {
		if j.Namespace != g.Meta.Namespace || j.Name != g.Meta.Name || len(spec.Roles) != 1 {
			continue
		}
		j = j.DeepCopy()
		parallelism, completions := batchCounts(j, spec.Roles[0].Replicas)
		j.Status, j.CreationTimestamp = batchv1.JobStatus{}, againAt(c, j)
		j.Spec.Template, j.Spec.Parallelism, j.Spec.Completions = spec.Roles[0].Template, &parallelism, completions
		enqueue(j, g, spec)
		admitInPart(j, g, spec)
		c.Jobs[i] = j
	}
}

// editWorkload makes Kueue's Workload of the job new. Its pod sets, and what Kueue counts of them, stay as they are: they show how Kueue counts what the job requests then, too.
// So does what keeps Kueue from admitting it, which nothing shows to be another for the new one.
func editWorkload(s *snapshot.Snapshot, g *gang.Gang, spec *Spec) *snapshot.Snapshot {
	c := s.Clone()
	list := c.Custom[kueue.Kind("Workload")]
	for i, u := range list {
		ref := metav1.GetControllerOf(u)
		if ref == nil || ref.UID != g.Meta.UID {
			continue
		}
		u = u.DeepCopy()
		status, _, _ := unstructured.NestedMap(u.Object, "status")
		unstructured.RemoveNestedField(u.Object, "status")
		keep := []string{"admissionChecks", "resourceRequests"} // the checks are made again, and nothing shows that they end otherwise
		if status["admission"] == nil {
			keep = append(keep, "conditions", "requeueState")
		}
		for _, field := range keep {
			if value, ok := status[field]; ok {
				Set(u, value, "status", field)
			}
		}
		if used, _, _ := unstructured.NestedSlice(status, "admission", "podSetAssignments"); len(used) > 0 {
			conditions, _, _ := unstructured.NestedSlice(status, "conditions")
			Set(u, slices.DeleteFunc(conditions, func(item any) bool {
				condition, _ := item.(map[string]any)
				return condition["type"] != "QuotaReserved" // without which no check is run
			}), "status", "conditions")
			for _, item := range used {
				if set, ok := item.(map[string]any); ok {
					set["resources"] = set["resourceUsage"]
				}
			}
			Set(u, used, "status", "resourceRequests")
		}
		if queue := newQueue(g, spec); queue != "" {
			Set(u, queue, "spec", "queueName")
		}
		list[i] = u
	}
	return c
}

// PlacementRequest is what would have to be placed if a gang were submitted again with another spec: the result of Resubmit as far
// as nodes are concerned, without the rest of a snapshot. ok is false where Resubmit would be nil, and for a gang with rules for parts.
func PlacementRequest(w *view.View, g *gang.Gang, edit func(*Spec)) (request placement.Gang, ok bool) {
	if g.Bare != nil && !alike(g.Bare) || len(g.Exclusive) > 0 || g.Decl != nil && len(g.Decl.Topology.Parts) > 0 { // which part a new pod is in depends on which of a role it is
		return placement.Gang{}, false
	}
	spec := Revise(g, edit)
	request.MinMember, request.Topology = min(spec.Min, spec.total()), view.Topology(g)
	podSets := g.Decl == nil && len(request.Topology.Parts) > 0
	for _, r := range spec.Roles {
		if r.Replicas == 0 {
			continue
		}
		role := placement.Role{Name: r.Name, Pod: w.VirtualOf(g, spec.Roles, gang.Member{Role: r.Name}), Count: r.Replicas}
		if podSets {
			role.Pod = kueue.InPodSet(r.Name, role.Pod)
		}
		if g.Decl != nil {
			for name, n := range g.Decl.RoleMin {
				if strings.EqualFold(name, r.Name) {
					role.Min = min(n, r.Replicas)
				}
			}
		}
		request.Roles = append(request.Roles, role)
	}
	return request, true
}
