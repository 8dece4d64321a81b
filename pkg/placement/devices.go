package placement

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/gangctl/gangctl/pkg/gang"
)

// podDevices are the resource claims of a pod.
type podDevices struct {
	own     []*resourceapi.ResourceClaim // not allocated; every member has its own
	shared  []*resourceapi.ResourceClaim // not allocated; all members use the same one
	fixed   []*resourceapi.ResourceClaim // allocated already
	problem string                       // why no device can be allocated at all
}

func (d podDevices) none() bool {
	return len(d.own)+len(d.shared)+len(d.fixed) == 0 && d.problem == ""
}

// devicesOf looks up the resource claims of a pod. A claim that is not made yet is as in its template.
func (c *Cluster) devicesOf(pod *corev1.Pod) podDevices {
	var d podDevices
	for _, ref := range pod.Spec.ResourceClaims {
		name, made := ClaimName(pod, ref), ref.ResourceClaimName != nil
		claim := c.store.resourceClaim(c.objects, pod.Namespace, name)
		switch {
		case claim != nil && claim.DeletionTimestamp != nil:
			d.problem = fmt.Sprintf("ResourceClaim %s is being deleted", name)
		case claim != nil && claim.Status.Allocation != nil && c.inUse(claim):
			d.fixed = append(d.fixed, claim)
		case claim != nil && made:
			d.shared = append(d.shared, claim)
		case claim != nil:
			d.own = append(d.own, claim)
		case made:
			d.problem = fmt.Sprintf("ResourceClaim %s not found", name)
		case ref.ResourceClaimTemplateName != nil:
			template := gang.Named(c.objects.ResourceClaimTemplates, pod.Namespace, *ref.ResourceClaimTemplateName)
			if template == nil {
				d.problem = fmt.Sprintf("ResourceClaimTemplate %s not found", *ref.ResourceClaimTemplateName)
				continue
			}
			own := &resourceapi.ResourceClaim{Spec: template.Spec.Spec}
			own.Namespace, own.Name = pod.Namespace, pod.Name+"-"+ref.Name
			d.own = append(d.own, own)
		}
	}
	if c.anyDevices {
		d.own, d.shared = unconstrained(d.own), unconstrained(d.shared)
	}
	if name := unknownRequest(slices.Concat(d.own, d.shared)); name != "" {
		return podDevices{fixed: d.fixed, problem: fmt.Sprintf("request %s is of a kind that is not known", name)}
	}
	return d
}

// ClaimName is the name of a ResourceClaim of a pod; empty while one that is to be made of a template is not there.
func ClaimName(pod *corev1.Pod, ref corev1.PodResourceClaim) string {
	if ref.ResourceClaimName != nil {
		return *ref.ResourceClaimName
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.Name == ref.Name && s.ResourceClaimName != nil {
			return *s.ResourceClaimName
		}
	}
	return ""
}

// unknownRequest names a request that is for neither devices of a class nor the first of several that are available; empty for none. The allocator cannot look at
// it. API servers refuse such requests, but a newer one may have others, and files are not validated.
func unknownRequest(claims []*resourceapi.ResourceClaim) string {
	for _, k := range claims {
		for _, r := range k.Spec.Devices.Requests {
			if r.Exactly == nil && len(r.FirstAvailable) == 0 {
				return fmt.Sprintf("%.80q", r.Name)
			}
		}
	}
	return ""
}

// inUse reports whether the devices of an allocated claim are taken: not if all pods that it is reserved for are gone by a what-if, or if it has lost them.
func (c *Cluster) inUse(claim *resourceapi.ResourceClaim) bool {
	if c.lost.Has(claim) {
		return false
	}
	return len(claim.Status.ReservedFor) == 0 || slices.ContainsFunc(claim.Status.ReservedFor, func(r resourceapi.ResourceClaimConsumerReference) bool {
		return !c.gone(r.UID)
	})
}

// copiesFor returns copies of claims that the allocator treats as different claims.
func copiesFor(claims []*resourceapi.ResourceClaim, member string) []*resourceapi.ResourceClaim {
	out := make([]*resourceapi.ResourceClaim, 0, len(claims))
	for i, k := range claims {
		k = k.DeepCopy()
		k.Name = fmt.Sprintf("%s-%s-%d", k.Name, member, i)
		k.UID = types.UID(k.Namespace + "/" + k.Name)
		k.Status = resourceapi.ResourceClaimStatus{}
		out = append(out, k)
	}
	return out
}

// deviceCheck rejects nodes on which the pod's devices cannot be had. It sets undecided where ctx ended first.
func deviceCheck(ctx context.Context, c *Cluster, pod *corev1.Pod, undecided *bool) check {
	d := c.devicesOf(pod)
	if d.none() {
		return nil
	}
	desired := append(copiesFor(d.own, "0"), copiesFor(d.shared, "shared")...)
	requested := requestedBy(desired)
	return func(n *node) []Violation {
		reason := d.problem
		if reason == "" {
			reason = elsewhere(d.fixed, n.obj)
		}
		if reason == "" && len(desired) > 0 {
			var known bool
			if reason, known = c.refused(ctx, n, desired, requested); !known {
				*undecided = true
				return nil
			}
		}
		if reason == "" {
			return nil
		}
		total, free := c.devicesOn(n.obj.Name)
		return []Violation{{Constraint: DRADevices, Requested: deviceCount(desired), Available: free, Total: total, Detail: reason}}
	}
}

// elsewhere names the allocated claim that is not available on a node; empty if all are.
func elsewhere(claims []*resourceapi.ResourceClaim, n *corev1.Node) string {
	for _, k := range claims {
		if where := k.Status.Allocation.NodeSelector; where != nil {
			if selector, err := nodeaffinity.NewNodeSelector(where); err != nil || !selector.Match(n) {
				return fmt.Sprintf("ResourceClaim %s is allocated elsewhere", k.Name)
			}
		}
	}
	return ""
}

// maxRequests is how many requests a claim may have for its devices to be looked for. Kubernetes allows 32, and the time that the search
// takes may grow with their permutations. Pods in use have one for each class of device.
const maxRequests = 16

func tooManyRequests(claim *resourceapi.ResourceClaim) bool {
	return len(claim.Spec.Devices.Requests) > maxRequests
}

// requestedBy is equal for claims that request the same devices in the same order.
func requestedBy(claims []*resourceapi.ResourceClaim) string {
	var all strings.Builder
	for _, k := range claims {
		text, err := json.Marshal(k.Spec)
		if err != nil {
			return "" // no claim of an API server
		}
		_, _ = all.Write(text) // it cannot fail
	}
	return all.String()
}

// refused returns why the claims cannot be allocated together on a node; empty if they can. known is false if ctx ended first, or a claim
// has too many requests: users write them, and a search for their devices may not end. It is found out once for a node and claims that request the same.
func (c *Cluster) refused(ctx context.Context, n *node, claims []*resourceapi.ResourceClaim, requested string) (reason string, known bool) {
	had, looked := c.allocation.looked(requested, n)
	switch {
	case looked && had:
		return "", true
	case looked:
		return noDevices(claims), true
	}
	results, reason, known := c.allocate(ctx, n, claims)
	if known && (results != nil || reason == noDevices(claims)) && requested != "" {
		c.allocation.look(requested, n, reason == "")
	}
	return reason, known
}

// allocate is refused, and what is allocated for the claims where they are not.
func (c *Cluster) allocate(ctx context.Context, n *node, claims []*resourceapi.ResourceClaim) (results []resourceapi.AllocationResult, reason string, known bool) {
	allocator, err := c.allocator()
	if err != nil {
		return nil, err.Error(), true
	}
	return allocateBy(ctx, allocator, n, claims)
}

// allocateBy is allocate by an allocator.
func allocateBy(ctx context.Context, allocator structured.Allocator, n *node, claims []*resourceapi.ResourceClaim) (results []resourceapi.AllocationResult, reason string, known bool) {
	if slices.ContainsFunc(claims, tooManyRequests) || ctx.Err() != nil {
		return nil, "", false
	}
	results, err := allocator.Allocate(ctx, n.obj, claims)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, "", false
	case err != nil:
		return nil, err.Error(), true
	case results == nil:
		return nil, noDevices(claims), true
	}
	return results, "", true
}

func noDevices(claims []*resourceapi.ResourceClaim) string {
	return "devices cannot be allocated: " + describeClaims(claims)
}

// describeClaims reads like: 4 of class gpu, 1 of class big or 2 of class small.
func describeClaims(claims []*resourceapi.ResourceClaim) string {
	var out []string
	describe := func(count int64, class string) string { return fmt.Sprintf("%d of class %s", max(count, 1), class) }
	for _, k := range claims {
		for _, r := range k.Spec.Devices.Requests {
			var ways []string
			if r.Exactly != nil {
				ways = append(ways, describe(r.Exactly.Count, r.Exactly.DeviceClassName)+describeCapacity(r.Exactly.Capacity))
			}
			for _, first := range r.FirstAvailable {
				ways = append(ways, describe(first.Count, first.DeviceClassName)+describeCapacity(first.Capacity))
			}
			out = append(out, strings.Join(bounded(ways), " or "))
		}
	}
	return strings.Join(bounded(out), ", ") // users write it, and there is one for each node
}

// deviceCount is how many devices claims request; requests for all devices, or for the first of several kinds, count as one.
func deviceCount(claims []*resourceapi.ResourceClaim) int64 {
	var sum int64
	for _, k := range claims {
		for _, r := range k.Spec.Devices.Requests {
			if r.Exactly != nil {
				sum += max(r.Exactly.Count, 1)
			} else {
				sum++
			}
		}
	}
	return sum
}

// deviceFit decides for how many members a candidate has devices, with the allocator of kube-scheduler.
type deviceFit struct {
	claims [][]*resourceapi.ResourceClaim // by role: those that every member has for itself
	shared []sharedDevices
	known  map[string]bool
	// once: devices that a member has are gone for members on other nodes, too; requested is what is requested then.
	once      bool
	requested []requestedDevices
	// allocate, allocateBy and refused are those of the cluster, within the budget; undecided reports that the budget ended one.
	allocateBy func(structured.Allocator, *node, []*resourceapi.ResourceClaim) (results []resourceapi.AllocationResult, reason string, known bool)
	allocate   func(*node, []*resourceapi.ResourceClaim) (results []resourceapi.AllocationResult, reason string, known bool)
	refused    func(*node, []*resourceapi.ResourceClaim) (reason string, known bool)
	undecided  bool
}

// newDeviceFit looks up what the members request by resource claims; it is nil if they request nothing. A claim that exists by
// name is for one member if only one uses it, else see sharedDevices.
func newDeviceFit(ctx context.Context, t *task) *deviceFit {
	d := &deviceFit{claims: make([][]*resourceapi.ResourceClaim, len(t.roles)), known: map[string]bool{}}
	d.allocate = func(n *node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, string, bool) {
		return t.c.allocate(ctx, n, claims)
	}
	d.refused = func(n *node, claims []*resourceapi.ResourceClaim) (string, bool) {
		return t.c.refused(ctx, n, claims, requestedBy(claims))
	}
	d.allocateBy = func(allocator structured.Allocator, n *node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, string, bool) {
		return allocateBy(ctx, allocator, n, claims)
	}
	pods, users := make([]podDevices, len(t.roles)), map[*resourceapi.ResourceClaim]int{}
	for i, k := range t.roles {
		if t.ignores(i, DRADevices) {
			continue
		}
		pods[i] = t.c.devicesOf(k.rules.pod)
		for _, claim := range pods[i].shared {
			users[claim] += k.count
		}
	}
	found := false
	for i, of := range pods {
		d.claims[i] = of.own
		for _, claim := range of.shared {
			if users[claim] == 1 {
				d.claims[i] = append(d.claims[i], claim)
			} else {
				d.share(t, claim, i)
			}
		}
		found = found || d.uses(i)
	}
	if !found {
		return nil
	}
	d.findOnce(ctx, t)
	return d
}

// limit limits the slots of a candidate to the devices that can be allocated.
func (d *deviceFit) limit(s *candidate) {
	if d == nil {
		return
	}
	for i := range s.slots {
		if !d.uses(i) || !s.ok[i] {
			continue
		}
		counts := make(combination, len(s.slots))
		n, _ := Largest(1, int64(s.slots[i]), func(n int64) bool {
			counts[i] = int(n) - 1
			return d.fits(s, counts, i)
		})
		if s.slots[i] = int(n); n == 0 {
			s.ok[i] = false
		}
	}
}

// fits reports whether the devices of the members on a candidate and of one more of role i can be allocated together.
func (d *deviceFit) fits(s *candidate, counts combination, i int) bool {
	if d == nil || !d.uses(i) {
		return true
	}
	key := fmt.Sprint(s.pos, counts, i)
	if known, ok := d.known[key]; ok {
		return known
	}
	var claims []*resourceapi.ResourceClaim
	for j, n := range counts {
		if j == i {
			n++
		}
		for m := range n {
			claims = append(claims, copiesFor(d.claims[j], fmt.Sprintf("%d-%d", j, m))...)
		}
	}
	for _, k := range d.shared {
		if k.users[i] || k.usedBy(counts) {
			claims = append(claims, copiesFor([]*resourceapi.ResourceClaim{k.claim}, "shared")...)
		}
	}
	reason, decided := d.refused(s.n, claims)
	if !decided {
		d.undecided = true
		return false
	}
	d.known[key] = reason == ""
	return reason == ""
}
