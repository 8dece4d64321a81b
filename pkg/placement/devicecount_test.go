package placement

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
)

func TestDeviceCounts(t *testing.T) {
	w := func(template string, count int32) Role {
		return role("Worker", count, aPod("w", nil, claiming(template)))
	}
	objects := deviceObjects()
	all := requestingDevices(1, "")
	all.Devices.Requests[0].Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	objects.ResourceClaimTemplates = append(objects.ResourceClaimTemplates, aTemplate("all", all))
	old := aSlice("n1", 8)
	old.Name, old.Spec.Pool.Generation = "old", 0
	objects.ResourceSlices = append(objects.ResourceSlices, old)
	c := NewCluster(objects)
	for name, tc := range map[string]struct {
		c     *Cluster
		roles []Role
		want  []DeviceCount
	}{
		"one role":            {c, []Role{w("two", 3)}, []DeviceCount{{Class: "gpu", Members: 3, PerMember: 2, Requested: 6, Free: 6, Total: 8}}},
		"roles that differ":   {c, []Role{w("four", 1), w("one", 2)}, []DeviceCount{{Class: "gpu", Members: 3, Requested: 6, Free: 6, Total: 8}}},
		"roles that do not":   {c, []Role{w("one", 1), w("one", 2)}, []DeviceCount{{Class: "gpu", Members: 3, PerMember: 1, Requested: 3, Free: 6, Total: 8}}},
		"by attribute":        {c, []Role{w("big", 4)}, []DeviceCount{{Class: "gpu", Members: 4, PerMember: 1, Requested: 4, Free: 3, Total: 4, OfClass: 8, Selector: `device.attributes["gpu.example.com"].size == "big"`}}},
		"the consumer gone":   {c.Without("uid-a"), []Role{w("one", 1)}, []DeviceCount{{Class: "gpu", Members: 1, PerMember: 1, Requested: 1, Free: 8, Total: 8}}},
		"on other nodes":      {c, []Role{role("Worker", 1, aPod("w", nil, claiming("one"), selecting("class", "other")))}, []DeviceCount{{Class: "gpu", Members: 1, PerMember: 1, Requested: 1, Elsewhere: 8}}},
		"all devices":         {c, []Role{w("all", 1)}, nil},
		"no claims":           {c, []Role{role("Worker", 1, aPod("w", nil))}, nil},
		"no such template":    {c, []Role{w("ten", 1)}, nil},
		"one with, one other": {c, []Role{role("PS", 1, aPod("p", nil)), w("one", 2)}, []DeviceCount{{Class: "gpu", Members: 2, PerMember: 1, Requested: 2, Free: 6, Total: 8}}},
	} {
		for i := range tc.want {
			tc.want[i].Drivers, tc.want[i].OfClass = []string{gpuDriver}, max(tc.want[i].OfClass, tc.want[i].Total)
		}
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.c.DeviceCounts(context.Background(), tc.roles)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a selector that fails", func(t *testing.T) {
		objects := deviceObjects()
		objects.ResourceClaimTemplates = append(objects.ResourceClaimTemplates, aTemplate("wrong", requestingDevices(1, `device.attributes["`+gpuDriver+`"].model == "big"`)))
		got := NewCluster(objects).DeviceCounts(context.Background(), []Role{w("wrong", 1)})
		if len(got) != 1 || got[0].Total != 0 || got[0].OfClass != 8 || got[0].Problem == "" {
			t.Errorf("counted %+v", got)
		}
	})
	t.Run("no time", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if got := c.DeviceCounts(ctx, []Role{w("one", 1)}); got != nil {
			t.Errorf("counted %v", got)
		}
	})
	t.Run("slices of one device", func(t *testing.T) {
		objects := deviceObjects()
		objects.ResourceSlices[0].Spec.Devices[0].ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "memory"}}
		if got := NewCluster(objects).DeviceCounts(context.Background(), []Role{w("one", 1)}); got != nil {
			t.Errorf("counted %v", got)
		}
	})
}
