// Package whatif returns snapshots in which one thing is different. The arguments are never changed.
package whatif

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
	"github.com/gangctl/gangctl/pkg/placement"
)

// release takes pods off the claims that are reserved for them; a claim that no pod uses any more gives its devices back.
func release(claims []*resourcev1.ResourceClaim, pods []*corev1.Pod) []*resourcev1.ResourceClaim {
	gone := map[types.UID]bool{}
	for _, p := range pods {
		gone[p.UID] = true
	}
	out := slices.Clone(claims)
	for i, claim := range claims {
		left := slices.DeleteFunc(slices.Clone(claim.Status.ReservedFor), func(r resourcev1.ResourceClaimConsumerReference) bool { return gone[r.UID] })
		if len(left) == len(claim.Status.ReservedFor) {
			continue
		}
		out[i] = claim.DeepCopy()
		out[i].Status.ReservedFor = left
		if len(left) == 0 {
			out[i].Status.Allocation = nil
		}
	}
	return out
}

// Claims is the cluster in which a ResourceClaimTemplate, and the claims that were made by it for some pods, request what edit makes of it.
func Claims(s *snapshot.Snapshot, namespace, template string, pods []*corev1.Pod, edit func(*resourcev1.ResourceClaimSpec)) *snapshot.Snapshot {
	c, made := s.Clone(), map[string]bool{}
	for _, p := range pods {
		for _, ref := range p.Spec.ResourceClaims {
			if name := ref.ResourceClaimTemplateName; name != nil && *name == template {
				made[placement.ClaimName(p, ref)] = true
			}
		}
	}
	for i, t := range c.ResourceClaimTemplates {
		if t.Namespace == namespace && t.Name == template {
			c.ResourceClaimTemplates[i] = t.DeepCopy()
			edit(&c.ResourceClaimTemplates[i].Spec.Spec)
		}
	}
	for i, k := range c.ResourceClaims {
		if k.Namespace == namespace && made[k.Name] {
			c.ResourceClaims[i] = k.DeepCopy()
			edit(&c.ResourceClaims[i].Spec)
		}
	}
	return c
}

// Nodes is the cluster in which f made something else of each node; f returns its argument for one that stays.
func Nodes(s *snapshot.Snapshot, f func(*corev1.Node) *corev1.Node) *snapshot.Snapshot {
	c := s.Clone()
	for i, n := range c.Nodes {
		c.Nodes[i] = f(n)
	}
	return c
}

// MoreNodes is the cluster with count more nodes like one that it has; see NewNodes.
func MoreNodes(s *snapshot.Snapshot, model *corev1.Node, daemons []*corev1.Pod, count int) *snapshot.Snapshot {
	c := s.Clone()
	nodes, pods := NewNodes(model, daemons, count)
	c.Nodes, c.Pods = append(c.Nodes, nodes...), append(c.Pods, pods...)
	return c
}

// NewNodes are count nodes like a model: empty but for copies of the pods that DaemonSets run on it.
func NewNodes(model *corev1.Node, daemons []*corev1.Pod, count int) ([]*corev1.Node, []*corev1.Pod) {
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	for i := range count {
		n := model.DeepCopy()
		n.Name = fmt.Sprintf("%s-new-%d", model.Name, i+1)
		n.UID, n.DeletionTimestamp = types.UID(n.Name), nil
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		maps.DeleteFunc(n.Labels, func(_, value string) bool { return value == model.Name }) // a driver's name of the model itself
		n.Labels[corev1.LabelHostname] = n.Name
		nodes = append(nodes, n)
		for _, d := range daemons {
			p := d.DeepCopy()
			p.Name, p.Spec.NodeName = d.Name+"-"+n.Name, n.Name
			p.UID = types.UID(p.Name)
			pods = append(pods, p)
		}
	}
	return nodes, pods
}

// Daemons are the pods on a node that every node like it will have too.
func Daemons(c *placement.Cluster, node string) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(c.PodsOn(node)), func(p *corev1.Pod) bool { return !placement.DaemonSetPod(p) })
}

// Moved is the cluster in which pods are on other nodes.
func Moved(s *snapshot.Snapshot, to map[*corev1.Pod]string) *snapshot.Snapshot {
	c := s.Clone()
	for i, p := range c.Pods {
		if node, moves := to[p]; moves {
			p = p.DeepCopy()
			p.Spec.NodeName = node
			c.Pods[i] = p
		}
	}
	return c
}

// Edit is the cluster in which f changed one object that has no type.
func Edit(s *snapshot.Snapshot, kind schema.GroupKind, namespace, name string, f func(*unstructured.Unstructured)) *snapshot.Snapshot {
	c := s.Clone()
	list := c.Custom[kind]
	edit := func(i int) {
		list[i] = list[i].DeepCopy()
		f(list[i])
	}
	if at, found := snapshot.Position(list, namespace, name); found {
		edit(at)
		return c
	}
	for i, u := range list {
		if u.GetNamespace() == namespace && u.GetName() == name {
			edit(i)
		}
	}
	return c
}

// DropCondition takes a condition of an object away.
func DropCondition(u *unstructured.Unstructured, kind string) {
	if conditions, ok, _ := unstructured.NestedSlice(u.Object, "status", "conditions"); ok {
		Set(u, slices.DeleteFunc(conditions, func(item any) bool {
			cond, _ := item.(map[string]any)
			return cond["type"] == kind
		}), "status", "conditions")
	}
}

// WithoutObjects is the cluster without some objects of a kind that has no type.
func WithoutObjects(s *snapshot.Snapshot, kind schema.GroupKind, gone []*unstructured.Unstructured) *snapshot.Snapshot {
	c := s.Clone()
	c.Custom[kind] = minus(c.Custom[kind], gone)
	return c
}

// Relabelled is the cluster in which a label of a job has another value, or has one.
func Relabelled(s *snapshot.Snapshot, job *gang.Job, key, value string) *snapshot.Snapshot {
	with := func(labels map[string]string) map[string]string {
		labels = maps.Clone(labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
		return labels
	}
	c := Edit(s, job.Kind.GroupKind(), job.Meta.Namespace, job.Meta.Name, func(u *unstructured.Unstructured) { u.SetLabels(with(u.GetLabels())) })
	for i, j := range c.Jobs {
		if j.UID == job.Meta.UID {
			c.Jobs[i] = j.DeepCopy()
			c.Jobs[i].Labels = with(j.Labels)
		}
	}
	return c
}

// Set sets a field. What is in the way of the path, such as a null that a user wrote, is replaced by an object.
func Set(u *unstructured.Unstructured, value any, path ...string) {
	object := u.Object
	for _, field := range path[:len(path)-1] {
		next, ok := object[field].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[field] = next
		}
		object = next
	}
	object[path[len(path)-1]] = runtime.DeepCopyJSONValue(value)
}

// QuotaLimit is the cluster in which a ResourceQuota has another limit.
func QuotaLimit(s *snapshot.Snapshot, q *corev1.ResourceQuota, key corev1.ResourceName, limit corev1.ResourceList) *snapshot.Snapshot {
	return editQuota(s, q, func(changed *corev1.ResourceQuota) {
		for _, hard := range []corev1.ResourceList{changed.Spec.Hard, changed.Status.Hard} {
			if hard != nil {
				hard[key] = limit[key]
			}
		}
	})
}

// QuotaUsed is the cluster in which so much of a quota is used.
func QuotaUsed(s *snapshot.Snapshot, q *corev1.ResourceQuota, key corev1.ResourceName, used resource.Quantity) *snapshot.Snapshot {
	return editQuota(s, q, func(changed *corev1.ResourceQuota) {
		if changed.Status.Used == nil { // as in a file that was written by hand
			changed.Status.Used = corev1.ResourceList{}
		}
		changed.Status.Used[key] = used
	})
}

func editQuota(s *snapshot.Snapshot, q *corev1.ResourceQuota, edit func(*corev1.ResourceQuota)) *snapshot.Snapshot {
	c := s.Clone()
	for i, other := range c.ResourceQuotas {
		if other.Namespace == q.Namespace && other.Name == q.Name {
			c.ResourceQuotas[i] = other.DeepCopy()
			edit(c.ResourceQuotas[i])
		}
	}
	return c
}

// WithoutEvents is the cluster in which events that match were never sent, for a cause that is removed.
func WithoutEvents(s *snapshot.Snapshot, match func(*corev1.Event) bool) *snapshot.Snapshot {
	c := s.Clone()
	c.Events = slices.DeleteFunc(c.Events, match)
	return c
}

// WithoutProbes is the cluster in which creates of a kind have not been tried.
func WithoutProbes(s *snapshot.Snapshot, kind string) *snapshot.Snapshot {
	c := s.Clone()
	c.Probes = slices.DeleteFunc(c.Probes, func(p snapshot.Probe) bool { return p.Kind == kind })
	return c
}

// created is the status of HTTP for an object that was made.
const created = 201

// AcceptingProbes is a snapshot in which the API server accepts the tried creates of a kind.
func AcceptingProbes(s *snapshot.Snapshot, kind string) *snapshot.Snapshot {
	c := s.Clone()
	for i, p := range c.Probes {
		if p.Kind == kind {
			c.Probes[i] = snapshot.Probe{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name, Code: created}
		}
	}
	return c
}

// multiplied is amount*num/den, rounded up; users write amounts whose product an int64 does not hold.
func multiplied(amount, num, den int64) int64 {
	product := new(big.Int).Mul(big.NewInt(amount), big.NewInt(num))
	product.Add(product, big.NewInt(den-1)).Quo(product, big.NewInt(den))
	if !product.IsInt64() {
		return math.MaxInt64
	}
	return product.Int64()
}

// Scale multiplies all that a container requests by num/den: what becomes less is rounded down to whole units of the resource, so that all members
// together take no more than before, but for thousandths of a core and devices, of which none may be left out. Limits above the request are
// multiplied, too; others follow it.
func Scale(r *corev1.ResourceRequirements, num, den int64) {
	scaled := func(name corev1.ResourceName, q resource.Quantity) resource.Quantity {
		amount := multiplied(request.Amount(name, q), num, den)
		if num < den {
			return request.Quantity(name, request.Down(name, amount))
		}
		return request.Quantity(name, request.Up(name, amount))
	}
	before := r.DeepCopy()
	for name, q := range before.Limits {
		had, requested := before.Requests[name]
		switch {
		case !requested:
			request.Set(r, name, scaled(name, q))
		case q.Cmp(had) > 0:
			r.Limits[name] = scaled(name, q)
		}
	}
	for name, q := range before.Requests {
		if limit, limited := before.Limits[name]; limited && limit.Cmp(q) > 0 {
			r.Requests[name] = scaled(name, q)
			continue
		}
		request.Set(r, name, scaled(name, q))
	}
}

// Limit is a quantity in a list of its own.
func Limit(key corev1.ResourceName, q resource.Quantity) corev1.ResourceList {
	return corev1.ResourceList{key: q}
}

// Resumed is the cluster when a job that is suspended goes on.
func Resumed(s *snapshot.Snapshot, job *gang.Job) *snapshot.Snapshot {
	return setSuspended(s, job, false)
}

// Suspended is the cluster when a job is suspended; it is as it was for one that cannot be.
func Suspended(s *snapshot.Snapshot, job *gang.Job) *snapshot.Snapshot {
	if suspension.FieldOf(job.Kind.Group) == nil {
		return s
	}
	return setSuspended(s, job, true)
}

func setSuspended(s *snapshot.Snapshot, job *gang.Job, to bool) *snapshot.Snapshot {
	if job.BatchJob == nil {
		return Edit(s, job.Kind.GroupKind(), job.Meta.Namespace, job.Meta.Name, func(u *unstructured.Unstructured) {
			Set(u, to, suspension.FieldOf(job.Kind.Group)...)
		})
	}
	c := s.Clone()
	for i, j := range c.Jobs {
		if j.Namespace == job.Meta.Namespace && j.Name == job.Meta.Name {
			j = j.DeepCopy()
			j.Spec.Suspend = &to
			c.Jobs[i] = j
		}
	}
	return c
}
