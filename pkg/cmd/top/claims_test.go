package top

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// claim is one that has a device, unless devices is empty.
func claim(name string, admin bool, devices ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	if len(devices) > 0 {
		c.Status.Allocation = &resourcev1.AllocationResult{}
	}
	for _, d := range devices {
		r := resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: "gpu.example.com", Pool: "n1", Device: d}
		if admin {
			r.AdminAccess = &admin
		}
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, r)
	}
	return c
}

// Devices that pods have by ResourceClaims are in no number: a note is shown wherever there are some.
func TestClaimsAreNotCounted(t *testing.T) {
	extended := claim("extended", false, "gpu-7")
	extended.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	none := []*resourcev1.ResourceClaim{claim("waits", false), claim("monitor", true, "gpu-0"), extended}
	for want, claims := range map[int][]*resourcev1.ResourceClaim{0: none, 1: append([]*resourcev1.ResourceClaim{claim("a", false, "gpu-0", "gpu-1")}, none...),
		2: {claim("a", false, "gpu-0"), claim("b", false, "gpu-1")}} {
		c := shop()
		c.S.ResourceClaims = claims
		file := filepath.Join(t.TempDir(), "seen.yaml")
		if err := c.Done().Save(file); err != nil {
			t.Fatal(err)
		}
		note := map[int]string{0: "", 1: "note: 1 ResourceClaim has devices that are not counted here\n", 2: "note: 2 ResourceClaims have devices that are not counted here\n"}[want]
		for _, view := range []string{"node", "job", "queue"} {
			if stdout, stderr, failed := run(t, nil, 0, view, "--from", file); failed != nil || stderr != note || stdout == "" {
				t.Errorf("%d, %s: got %+v, %q", want, view, failed, stderr)
			}
		}
		var r usage.Nodes
		if stdout, _, _ := run(t, nil, 0, "node", "-o", "json", "--from", file); json.Unmarshal([]byte(stdout), &r) != nil || r.Uncounted != want {
			t.Errorf("got %d, want %d", r.Uncounted, want)
		}
	}
}

// A user who may not see whether there are claims gets a note, too, on the frame of a watch as well.
func TestClaimsUnseen(t *testing.T) {
	s := shop().Done()
	s.Denied = append(s.Denied, snapshot.Denial{Resource: "resourceclaims.resource.k8s.io"})
	v := &view{nodes: &usage.Nodes{}, notes: unclaimed(s), empty: "no nodes"}
	frame := watchFrame(v, layout{width: 200}, status{what: Node})
	if want := "note: you may not list ResourceClaims; devices that they have are not counted here"; len(frame) != 4 || frame[1] != want {
		t.Errorf("got %s", fmt.Sprint(strings.Join(frame, "\n")))
	}
}
