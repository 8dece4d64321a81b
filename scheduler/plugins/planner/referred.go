package planner

import (
	"iter"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/gangctl/gangctl/pkg/placement"
)

// referred are the objects to which members refer, while none of them changes: to derive again what is derived of thousands of volumes for each attempt
// would cost more than the attempt, and so would it to list them.
type referred struct {
	versions string // of the stores that they were listed from, if known
	objects  *placement.Objects
	known    map[any]struct{} // every one of them
}

// latest returns the objects; the same as before where none of them has changed. They are not listed where the versions of their stores are the same, and known.
func (r *referred) latest(classes []*resourceapi.DeviceClass, versions string, list func(*placement.Objects) error) (*placement.Objects, error) {
	if versions != "" && versions == r.versions && slices.Equal(classes, r.objects.DeviceClasses) {
		return r.objects, nil
	}
	o := &placement.Objects{DeviceClasses: classes}
	if err := list(o); err != nil {
		return nil, err
	}
	r.versions = versions // which were read before the list
	if !r.same(o) {
		r.objects, r.known = o, map[any]struct{}{}
		for obj := range each(o) {
			r.known[obj] = struct{}{}
		}
	}
	return r.objects, nil
}

// same reports whether the objects are the same; listers have no order.
func (r *referred) same(o *placement.Objects) bool {
	count := 0
	for obj := range each(o) {
		if _, known := r.known[obj]; !known {
			return false
		}
		count++
	}
	return r.objects != nil && count == len(r.known)
}

// each goes through the objects.
func each(o *placement.Objects) iter.Seq[any] {
	return func(yield func(any) bool) {
		_ = pass(o.DeviceClasses, yield) && pass(o.Namespaces, yield) && pass(o.PersistentVolumes, yield) && pass(o.PersistentVolumeClaims, yield) &&
			pass(o.StorageClasses, yield) && pass(o.CSINodes, yield) && pass(o.CSIDrivers, yield) && pass(o.VolumeAttachments, yield) &&
			pass(o.ResourceClaims, yield) && pass(o.ResourceSlices, yield)
	}
}

func pass[T any](list []*T, yield func(any) bool) bool {
	for _, o := range list {
		if !yield(o) {
			return false
		}
	}
	return true
}
