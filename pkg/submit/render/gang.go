package render

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// writerOf finds the writer of a dialect.
func writerOf(d gang.Dialect) (gang.Writer, error) {
	w, ok := dialect.WriterOf(d)
	if !ok {
		return w, fmt.Errorf("a gang cannot be declared in dialect %q", d)
	}
	return w, nil
}

// declaration is the gang of a spec whose roles have their pods. It is named like the job: that is what an operator with gang
// scheduling on expects, and what people look for.
func declaration(s Spec, roles []gang.Role) gang.Declaration {
	return gang.Declaration{
		Key:       gang.Key{Dialect: s.Gang.Dialect, Namespace: s.Namespace, Name: s.Name},
		MinMember: s.Gang.MinAvailable, MinResources: gangResources(roles, s.Gang.MinAvailable),
		Queue: s.Gang.Queue, PriorityClass: s.Pod.PriorityClass, Topology: s.Gang.Topology,
	}
}

// groupObject is the gang's object, with the labels of the job; nil in a dialect that has none.
func groupObject(w gang.Writer, d gang.Declaration, s Spec) *unstructured.Unstructured {
	if w.Object == nil {
		return nil
	}
	version := s.Gang.Version
	if version.Empty() {
		version = w.Versions[0]
	}
	u := w.Object(d, version)
	if len(s.Labels) > 0 {
		u.SetLabels(s.Labels)
	}
	return u
}

// Own makes a stored job the owner of an object, so that deleting the job deletes both. It is not the controller, which is
// whatever creates the members of the job. blockOwnerDeletion is false because setting it to true needs the right to update
// finalizers of jobs, which a user rarely has.
func Own(object *unstructured.Unstructured, job *unstructured.Unstructured) {
	block := false
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: job.GetAPIVersion(), Kind: job.GetKind(), Name: job.GetName(), UID: job.GetUID(), BlockOwnerDeletion: &block,
	}})
}

// resources are those of one member. CPU and memory get a limit equal to the request: a member that may use more than it
// requests is the one that is evicted when a node runs short, and takes the gang with it. GPUs are limits; the API server
// makes the equal request, the only one it allows for an extended resource.
func resources(preset corev1.ResourceRequirements, role Role, gpu corev1.ResourceName) corev1.ResourceRequirements {
	r := preset
	set := func(list *corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = q
	}
	for name, quantity := range map[corev1.ResourceName]*resource.Quantity{
		corev1.ResourceCPU: role.CPU, corev1.ResourceMemory: role.Memory, corev1.ResourceEphemeralStorage: role.Storage,
	} {
		if quantity != nil {
			set(&r.Requests, name, *quantity)
			set(&r.Limits, name, *quantity)
		}
	}
	for name, quantity := range role.Limits {
		set(&r.Limits, name, quantity)
	}
	delete(r.Requests, gpu)
	delete(r.Limits, gpu)
	if role.GPUs > 0 {
		set(&r.Limits, gpu, *resource.NewQuantity(role.GPUs, resource.DecimalSI))
	}
	for name, quantity := range role.Devices {
		delete(r.Requests, name)
		set(&r.Limits, name, quantity)
	}
	return r
}

// share is members that request as much of a resource each.
type share struct {
	amount int64 // in the unit of request.Amount
	count  int32
}

// gangResources is the requests of minAvailable members together: the sum over all members when all are needed. When fewer are,
// it is, for each resource, the sum of the smallest requests: a gang scheduler refuses to start below minResources, so it
// must not exceed what some startable subset needs. Roles are counted, not their members: users write any number of replicas.
func gangResources(roles []gang.Role, minAvailable int32) corev1.ResourceList {
	shares, formats := map[corev1.ResourceName][]share{}, map[corev1.ResourceName]resource.Format{}
	for _, role := range roles {
		for name, quantity := range request.OfTemplate(role.Template.Spec) {
			if _, known := formats[name]; !known {
				formats[name] = quantity.Format
			}
			shares[name] = append(shares[name], share{request.Amount(name, quantity), max(role.Replicas, 0)})
		}
	}
	total := corev1.ResourceList{}
	for name, all := range shares {
		if sum, needed := smallest(all, int64(minAvailable)-without(roles, all)); needed {
			quantity := request.Quantity(name, sum)
			quantity.Format = formats[name]
			total[name] = quantity
		}
	}
	return total
}

// without is how many members do not request the resource of which others have these shares. They are the smallest.
func without(roles []gang.Role, shares []share) (n int64) {
	for _, role := range roles {
		n += int64(max(role.Replicas, 0))
	}
	for _, s := range shares {
		n -= int64(s.count)
	}
	return n
}

// smallest is the sum of the smallest requests of so many members; needed is false where that is none.
func smallest(shares []share, members int64) (sum int64, needed bool) {
	slices.SortFunc(shares, func(a, b share) int { return cmp.Compare(a.amount, b.amount) })
	for _, s := range shares {
		if count := int32(min(int64(s.count), members)); count > 0 {
			sum, needed = request.Sum(sum, request.Times(s.amount, count)), true
			members -= int64(count)
		}
	}
	return sum, needed
}
