package fit

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// MaxFit returns the largest count of a role, from 0 to limit, with which the gang fits, and the placement for it. All other
// roles keep their counts, and every member counts as needed: MinMember and Min are ignored. ok is false if the gang does not
// fit even without the role. The count is the largest for which a placement was found; it is proven to be the largest there
// is if exact is true.
func MaxFit(ctx context.Context, c *Cluster, g Gang, role string, limit int32, opts Options) (count int32, ok, exact bool, best Result) {
	exact = true
	fits := func(n int64) bool {
		r := Place(ctx, c, whole(g, role, func(r *Role) { r.Count = int32(n) }), opts)
		if r.Fits() {
			best = r
		} else if !r.Impossible() {
			exact = false
		}
		return r.Fits()
	}
	n, ok := Largest(1, int64(limit), fits) // not from 0: other roles may want to be with one of these
	if !ok {
		n, ok = 0, fits(0)
	}
	return int32(n), ok, exact, best
}

// MaxRequest returns the largest request of a resource by a container of a role with which the gang fits: a multiple of step,
// in the unit of Quantity, up to limit. ok is false if not even one step fits, or if there is no such role or container. A limit
// of the container for the resource is lowered with the request where it is above it, because devices need both equal.
func MaxRequest(ctx context.Context, c *Cluster, g Gang, role, container string, name corev1.ResourceName, step, limit int64, opts Options) (value int64, ok bool, best Result) {
	known := slices.ContainsFunc(g.Roles, func(r Role) bool {
		return r.Name == role && slices.ContainsFunc(r.Pod.Spec.Containers, func(k corev1.Container) bool { return k.Name == container })
	})
	if !known || step <= 0 {
		return 0, false, Result{}
	}
	n, ok := Largest(1, limit/step, func(n int64) bool {
		try := whole(g, role, func(r *Role) { r.Pod = WithRequest(r.Pod, container, name, n*step) })
		r := Place(ctx, c, try, opts)
		if r.Fits() {
			best = r
		}
		return r.Fits()
	})
	return n * step, ok, best
}

// WithRequest returns a copy of the pod in which a container asks for this amount of a resource, in the unit of Quantity.
func WithRequest(pod *corev1.Pod, container string, name corev1.ResourceName, amount int64) *corev1.Pod {
	pod = pod.DeepCopy()
	for i := range pod.Spec.Containers {
		k := &pod.Spec.Containers[i]
		if k.Name != container {
			continue
		}
		if k.Resources.Requests == nil {
			k.Resources.Requests = corev1.ResourceList{}
		}
		k.Resources.Requests[name] = Quantity(name, amount)
		if l, ok := k.Resources.Limits[name]; ok && l.Cmp(Quantity(name, amount)) > 0 {
			k.Resources.Limits[name] = Quantity(name, amount)
		}
	}
	return pod
}

// whole returns the gang with every member needed and one role changed.
func whole(g Gang, role string, change func(*Role)) Gang {
	g.MinMember = 0
	g.Roles = slices.Clone(g.Roles)
	for i := range g.Roles {
		g.Roles[i].Min = 0
		if g.Roles[i].Name == role {
			change(&g.Roles[i])
		}
	}
	return g
}

// Largest returns the largest value from lo to hi for which fits is true, if fits is true up to some value and false above.
// ok is false if it is false even for lo.
func Largest(lo, hi int64, fits func(int64) bool) (value int64, ok bool) {
	if lo > hi || !fits(lo) {
		return 0, false
	}
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		if fits(mid) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo, true
}
