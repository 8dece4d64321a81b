package usage_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// load is what a test knows that pods hold.
type load struct {
	devices     map[corev1.ResourceName]int64
	cpu, memory int64
	pods        int64
	// leaving are those of the devices that pods hold which are being deleted.
	leaving int64
}

// randomPod changes a pod at random, and returns what it holds by hand: the larger of the init containers and of all that run at
// the same time.
func randomPod(r *rand.Rand, p *corev1.Pod, kind corev1.ResourceName) (devices, cpu, memory int64) {
	devices, cpu, memory = int64(r.IntN(5)), int64(r.IntN(9)), int64(r.IntN(33))
	requests := func(n, cpu, memory int64) corev1.ResourceRequirements {
		list := clustertest.List("cpu", fmt.Sprint(cpu), "memory", fmt.Sprintf("%dGi", memory))
		if n > 0 {
			list[kind] = *resource.NewQuantity(n, resource.DecimalSI)
		}
		return corev1.ResourceRequirements{Requests: list, Limits: list}
	}
	p.Spec.Containers[0].Resources = requests(devices, cpu, memory)
	switch r.IntN(4) {
	case 0:
		n, c, m := int64(r.IntN(6)), int64(r.IntN(12)), int64(r.IntN(40))
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: requests(n, c, m)}}
		devices, cpu, memory = max(devices, n), max(cpu, c), max(memory, m)
	case 1:
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: &always, Resources: requests(1, 1, 1)}}
		devices, cpu, memory = devices+1, cpu+1, memory+1
	}
	if r.IntN(6) == 0 {
		leaving(p, time.Minute)
	}
	return devices, cpu, memory
}

// randomCluster has nodes of several kinds in several states, and pods of jobs, services, DaemonSets and of their own. It returns
// what those that hold something hold, by hand.
func randomCluster(r *rand.Rand) (*clustertest.Cluster, load) {
	c := clustertest.New()
	sum := load{devices: map[corev1.ResourceName]int64{}}
	kinds := map[string]corev1.ResourceName{}
	var names []string
	for i := range 1 + r.IntN(6) {
		n := c.Node(fmt.Sprintf("n%d", i), 0)
		kinds[n.Name] = pick(r, nvidia, nvidia, amd, mig)
		total := int64(r.IntN(17))
		has(n, kinds[n.Name], total, int64(r.IntN(int(total)+1))*int64(r.IntN(2)))
		n.Spec.Unschedulable = r.IntN(6) == 0
		if r.IntN(6) == 0 {
			n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		}
		if r.IntN(8) == 0 {
			clustertest.NotReady(n, time.Hour)
		}
		names = append(names, n.Name)
	}
	count := func(p *corev1.Pod) {
		kind := kinds[p.Spec.NodeName]
		if kind == "" {
			kind = nvidia
		}
		devices, cpu, memory := randomPod(r, p, kind)
		if r.IntN(8) == 0 {
			p.Status.Phase = pick(r, corev1.PodSucceeded, corev1.PodFailed)
		}
		if kinds[p.Spec.NodeName] == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			return // it has no node, its node is gone, or it has ended
		}
		sum.devices[kind] += devices
		if p.DeletionTimestamp != nil {
			sum.leaving += devices
		}
		sum.cpu, sum.memory, sum.pods = sum.cpu+cpu*1000, sum.memory+memory<<30, sum.pods+1
	}
	for i := range r.IntN(5) {
		g := clustertest.Gang{Name: fmt.Sprintf("job%d", i), Workers: 1 + r.IntN(4), Kind: pick(r, "TFJob", "PyTorchJob", "Job"), NoGroup: r.IntN(3) == 0,
			Pod: func(_ int, p *corev1.Pod) { count(p) }}
		for range r.IntN(g.Workers + 1) {
			g.Nodes = append(g.Nodes, pick(r, append(names, "vanished")...))
		}
		c.Add(g)
	}
	for i := range r.IntN(4) {
		p := bare(fmt.Sprintf("bare%d", i), pick(r, names...))
		count(p)
		c.Put(p)
	}
	if r.IntN(2) == 0 {
		p := c.Daemon("agent", names[0], "1")
		count(p)
	}
	return c, sum
}

func ledger(held usage.Held) load {
	l := load{devices: map[corev1.ResourceName]int64{}, cpu: held.CPU, memory: held.Memory, pods: held.Pods}
	for kind, n := range held.Devices {
		if n != 0 {
			l.devices[kind] = n
		}
	}
	return l
}

// What nodes use is what jobs and others hold, and both are what the test put there.
func TestSumsAgree(t *testing.T) {
	for seed := range uint64(2000) {
		c, byHand := randomCluster(rand.New(rand.NewPCG(seed, 6)))
		w := view.New(c.Done())
		nodes, jobs := usage.OfNodes(w), usage.OfJobs(w)
		byNode, held := load{devices: map[corev1.ResourceName]int64{}}, usage.Held{}
		for _, n := range nodes.Nodes {
			byNode.cpu, byNode.memory, byNode.pods = byNode.cpu+n.CPU.Used, byNode.memory+n.Memory.Used, byNode.pods+n.Pods.Used
			for _, d := range n.Devices {
				if d.Used != 0 {
					byNode.devices[d.Kind] += d.Used
				}
				byNode.leaving += d.Leaving
				checkDevices(t, seed, n, d)
			}
		}
		for _, j := range jobs.Jobs {
			held.Add(j.Held)
		}
		for _, o := range jobs.Others {
			held.Add(o.Held)
		}
		for kind, n := range byHand.devices {
			if n == 0 {
				delete(byHand.devices, kind)
			}
		}
		allow := cmp.AllowUnexported(load{})
		if diff := cmp.Diff(byHand, byNode, allow); diff != "" {
			t.Fatalf("seed %d: the nodes' sum: -want +got\n%s", seed, diff)
		}
		byHand.leaving = 0 // jobs do not show it
		if diff := cmp.Diff(byHand, ledger(held), allow); diff != "" {
			t.Fatalf("seed %d: the sum of jobs and others: -want +got\n%s", seed, diff)
		}
		for _, total := range nodes.Totals {
			if len(total.Largest) > 0 && total.Largest[0].Members != total.Free {
				t.Fatalf("seed %d: %s: %d free, but the largest gang has %d members of one device", seed, total.Kind, total.Free, total.Largest[0].Members)
			}
		}
	}
}

// checkDevices: nothing is counted twice, and nothing left out.
func checkDevices(t *testing.T, seed uint64, n usage.Node, d usage.Devices) {
	t.Helper()
	var unusable, shares int64
	for _, u := range d.Unusable {
		unusable += u.Amount
		if u.Reason == usage.ReasonOther {
			t.Fatalf("seed %d: %s: %+v: no reason", seed, n.Name, d)
		}
	}
	for _, s := range d.Shares {
		shares += s.Amount
	}
	if d.Idle != d.Free+unusable || d.Idle != max(0, d.Total-d.Used) || shares != d.Used || d.Free < 0 {
		t.Fatalf("seed %d: %s: %+v", seed, n.Name, d)
	}
}
