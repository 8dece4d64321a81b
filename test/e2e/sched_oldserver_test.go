package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// olderServers are programs that are kube-apiservers of older versions, by what
// they are called: kube-apiserver-v1.30 and so on. They are built by make
// old-servers, which takes long.
func olderServers(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("GANGCTL_OLD_SERVERS")
	if dir == "" {
		t.Skip("GANGCTL_OLD_SERVERS names no directory of older API servers: make old-servers builds them")
	}
	programs, err := filepath.Glob(filepath.Join(dir, "kube-apiserver-v*"))
	must(t, err)
	if len(programs) == 0 {
		t.Fatalf("no kube-apiserver-v* in %s", dir)
	}
	slices.Sort(programs)
	return programs
}

// version is that of an API server by the name of its program, such as v1.30.
func version(program string) string {
	_, v, _ := strings.Cut(filepath.Base(program), "kube-apiserver-")
	return v
}

// firstNative is the first version that has gangs of its own that are off by
// default and that we read.
const firstNative = "v1.36"

// TestOldServers runs the scheduler against API servers of older versions, under
// the rights that install grants.
func TestOldServers(t *testing.T) {
	for _, program := range olderServers(t) {
		t.Run(version(program), func(t *testing.T) {
			c := newOlder(t, program)
			if have, err := c.client.Discovery().ServerVersion(); err != nil || !strings.HasPrefix(have.GitVersion, version(program)+".") {
				t.Fatalf("the API server is %v, %v", have, err)
			}
			c.schedules(t, wires()[1], wires()[6], wires()[7])
		})
		if version(program) == firstNative {
			t.Run(version(program)+" and its gangs", func(t *testing.T) {
				c := newOlder(t, program, "--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1alpha2=true")
				native := wires()[0]
				native.resource.Version, native.waits = "v1alpha2", "PodGroupScheduled=False/Unschedulable"
				c.schedules(t, native, wires()[7])
			})
		}
	}
}

// schedules: a pod of no gang is bound; of two gangs that do not both fit one is
// bound as a whole and one waits; one that cannot fit gets that reported.
func (c *olderCluster) schedules(t *testing.T, dialects ...wire) {
	sched := startScheduler(t, c.DataDir, nil, nil, allNames)
	c.create(t, plain("single", "gang-scheduler", "1"))
	c.placed(t, "single")
	must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), "single", now()))
	for _, w := range dialects {
		w.phase = "" // which takes a kubelet
		g := c.with(t, w)
		g.secondGangWaitsWhole()
		name := "wide-" + w.name
		g.declare(name, 9)
		g.members(name, 9, 9)
		for _, member := range g.names(name, 9) {
			g.waitMessage(t, member, "8 of the 9 members that its gang needs fit")
		}
		g.waitEvent(name, "Unschedulable", "8 of the 9 members that the gang needs fit")
		if n := g.bound(t, g.names(name, 9)...); n != 0 {
			t.Errorf("%d members of a gang that does not fit are bound", n)
		}
		if w.resource.Version != "v1alpha2" { // whose minimum cannot be changed
			g.setMinimum(name, 8, 9)
			eventually(t, "8 members of "+name+" have nodes", func(context.Context) bool { return g.bound(t, g.names(name, 9)...) == 8 })
		}
		g.remove(name, 9)
		c.empty(t)
	}
	sched.calm()
}

// calm fails the test if the scheduler was refused anything or complained.
func (s *ownScheduler) calm() {
	s.t.Helper()
	lines := strings.Split(s.output.String(), "\n")
	for _, line := range lines {
		if strings.Contains(line, "The manifest file is empty") { // which the engine logs everywhere
			continue
		}
		if strings.HasPrefix(line, "E") || strings.Contains(line, "forbidden") || strings.Contains(line, "Unauthorized") {
			s.t.Errorf("logged: %s", line)
		}
	}
	if len(lines) > 1000 {
		s.t.Errorf("%d lines in the log", len(lines))
	}
}

// TestServerUpgrade: what an API server begins to serve is used without a restart
// of the scheduler, here devices.
func TestServerUpgrade(t *testing.T) {
	servers := olderServers(t)
	at := slices.IndexFunc(servers, func(p string) bool { return version(p) >= "v1.34" }) // which serve them
	if at <= 0 {
		t.Skip("it takes a version before v1.34, and one from there on")
	}
	c := newOlder(t, servers[at-1])
	sched := startScheduler(t, c.DataDir, nil, nil)
	c.create(t, plain("before", "gang-scheduler", "1"))
	c.placed(t, "before")
	c.serve(servers[at])
	ctx, devices := t.Context(), c.client.ResourceV1()
	_, err := devices.DeviceClasses().Create(ctx, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "test"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = devices.ResourceSlices().Create(ctx, &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "test"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "test.example.com", NodeName: ptr.To("old-2"), Pool: resourcev1.ResourcePool{Name: "old-2", ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "one"}},
	}}, metav1.CreateOptions{})
	must(t, err)
	_, err = devices.ResourceClaims(space).Create(ctx, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "test"}, Spec: resourcev1.ResourceClaimSpec{
		Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "any", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "test"}}}},
	}}, metav1.CreateOptions{})
	must(t, err)
	pod := plain("after", "gang-scheduler", "1")
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: ptr.To("test")}}
	c.create(t, pod)
	start := time.Now()
	c.placed(t, "after") // which is looked up once a minute
	t.Logf("the device was used %s after the API server served it", time.Since(start).Round(time.Second))
	if have, err := c.client.CoreV1().Pods(space).Get(ctx, "after", metav1.GetOptions{}); err != nil || have.Spec.NodeName != "old-2" {
		t.Errorf("on %s, where the device is not: %v", have.Spec.NodeName, err)
	}
	if n := strings.Count(sched.output.String(), "API is served after all"); n < 3 {
		t.Errorf("%d APIs were found, want those of claims, slices and classes", n)
	}
}
