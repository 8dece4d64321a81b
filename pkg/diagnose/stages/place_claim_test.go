package stages_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// devices publishes so many devices of class gpu on each node.
func devices(c *clustertest.Cluster, count int) {
	c.Put(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
	for _, n := range c.S.Nodes {
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + n.Name}, Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: &n.Name, Pool: resourcev1.ResourcePool{Name: n.Name, ResourceSliceCount: 1}}}
		for i := range count {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("d%d", i)})
		}
		c.Put(slice)
	}
}

func deviceRequest(class string) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}}}
}

// nvidiaDevices publishes a device of class gpu on each of two nodes that have the vendor's labels.
func nvidiaDevices(c *clustertest.Cluster) {
	c.Nodes(2, 0)
	devices(c, 1)
	for i, n := range c.S.Nodes {
		n.Labels["nvidia.com/gpu.present"], n.Labels[corev1.LabelInstanceTypeStable] = "true", "gpu.1x"
		c.S.ResourceSlices[i].Spec.Driver = "gpu.nvidia.com"
	}
	template(c, "one", "gpu")
}

// template is one by which every pod claims a device of a class.
func template(c *clustertest.Cluster, name, class string) {
	c.Put(&resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: deviceRequest(class)}})
}

// claims lets every pod claim by a template.
func claims(name string) func(*clustertest.Gang) {
	return spec(func(p *corev1.PodSpec) {
		p.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimTemplateName: &name}}
	})
}

// taken allocates a device of a node to a pod.
func taken(c *clustertest.Cluster, node, device, pod string) {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: pod + "-r", UID: types.UID(pod + "-r")}, Spec: deviceRequest("gpu")}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "gpu.example.com", Pool: node, Device: device}}}}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: types.UID("Pod:research/" + pod)}}
	c.Put(claim)
}

// madeClaim makes the claim of a member that claims by a template.
func madeClaim(c *clustertest.Cluster, pod string) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: pod + "-r", UID: types.UID(pod + "-r")}, Spec: deviceRequest("gpu")}
	c.Put(claim)
	for _, p := range c.S.Pods {
		if p.Name == pod {
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "r", ResourceClaimName: &claim.Name}}
		}
	}
	return claim
}

func TestDeviceClaims(t *testing.T) {
	check(t, []testCase{
		{name: "a quota refuses the claims", code: answer.NSQuota, exit: 3, first: "quota dra of namespace team is used up: 4 of 4 .* used, 2 more members need 2", wantText: []string{"the claims of 2 pods were refused, last 10s ago"}, alone: true, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 4)
			template(c, "one", "gpu")
			c.Add(gangOf(2, 0, claims("one")))
			const key = "gpu.deviceclass.resource.k8s.io/devices"
			quota(c, "dra", clustertest.List(key, "4"), clustertest.List(key, "4"))
			for _, pod := range []string{"gang-worker-0", "gang-worker-1"} {
				c.Event("Pod", "team", pod, "resource_claim", "FailedResourceClaimCreation", `PodResourceClaim r: failed to create ResourceClaim: resourceclaims.resource.k8s.io "`+pod+`-r-" is forbidden: exceeded quota: dra, requested: `+key+`=1, used: `+key+`=4, limited: `+key+`=4`, 10*time.Second)
			}
		}},
		{name: "a quota has refused the claims, and allows them now", code: answer.Fits, exit: 3, never: []answer.Code{answer.NSQuota}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 4)
			template(c, "one", "gpu")
			c.Add(gangOf(2, 0, claims("one"), young))
			const key = "gpu.deviceclass.resource.k8s.io/devices"
			quota(c, "dra", clustertest.List(key, "8"), clustertest.List(key, "4"))
			c.Event("Pod", "team", "gang-worker-0", "resource_claim", "FailedResourceClaimCreation", `PodResourceClaim r: failed to create ResourceClaim: resourceclaims.resource.k8s.io "gang-worker-0-r-" is forbidden: exceeded quota: dra, requested: `+key+`=1, used: `+key+`=4, limited: `+key+`=4`, 10*time.Second)
		}},
		{name: "claims of pods that are gone have them", code: answer.DRAUnallocatable, exit: 5, first: "^ResourceClaim research/left-r has 1 device of n1, and its pod left does not exist any more, or has ended; 1/2 members fit without it$",
			wantText: []string{"was deleted 11h ago, and is held by finalizer resource.kubernetes.io/delete-protection"}, fix: "free the devices of ResourceClaim research/left-r", alone: true, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 0)
				devices(c, 1)
				template(c, "one", "gpu")
				c.Add(gangOf(2, 0, claims("one")))
				taken(c, "n1", "d0", "left")
				deleted := clustertest.Ago(11 * time.Hour)
				c.S.ResourceClaims[0].DeletionTimestamp, c.S.ResourceClaims[0].Finalizers = &deleted, []string{"resource.kubernetes.io/delete-protection"}
			}},
		{name: "a claim that no pod uses has them", code: answer.DRAUnallocatable, exit: 5, first: "^ResourceClaim research/left-r has 1 device of n1, and is reserved for no pod; ", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 1)
			template(c, "one", "gpu")
			c.Add(gangOf(2, 0, claims("one")))
			taken(c, "n1", "d0", "left")
			c.S.ResourceClaims[0].Status.ReservedFor = nil
		}},
		{name: "devices that do not go together", code: answer.TooBig, exit: 6, first: "^each worker claims 1 of class gpu, 1 of class gpu with one value of gpu.example.com/root, and the whole cluster has such devices for 0 of 1 members: there are enough of each class, but not together$", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			devices(c, 2)
			for i := range c.S.ResourceSlices[0].Spec.Devices {
				root := fmt.Sprint("pci", i)
				c.S.ResourceSlices[0].Spec.Devices[i].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"root": {StringValue: &root}}
			}
			template(c, "pair", "gpu")
			spec, root := &c.S.ResourceClaimTemplates[0].Spec.Spec.Devices, resourcev1.FullyQualifiedName("gpu.example.com/root")
			second := spec.Requests[0]
			second.Name = "s"
			spec.Requests = append(spec.Requests, second)
			spec.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &root}}
			c.Add(gangOf(1, 0, claims("pair")))
		}},
		{name: "the first of several classes, of which there is none", code: answer.TooBig, exit: 6, first: `^each worker claims 1 of class h100 or 2 of class a100, and the whole cluster has such devices for 0 of 1 members; drivers publish 2 of gpu.example.com \(L40S\)$`, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0)
			devices(c, 2)
			product := "L40S"
			for i := range c.S.ResourceSlices[0].Spec.Devices {
				c.S.ResourceSlices[0].Spec.Devices[i].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"productName": {StringValue: &product}}
			}
			for _, name := range []string{"h100", "a100"} {
				c.Put(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "other"`}}}}})
			}
			template(c, "any", "h100")
			c.S.ResourceClaimTemplates[0].Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", FirstAvailable: []resourcev1.DeviceSubRequest{
				{Name: "a", DeviceClassName: "h100", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}, {Name: "b", DeviceClassName: "a100", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}}}}
			c.Add(gangOf(1, 0, claims("any")))
		}},
		{name: "one member has its device already, on its node", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 1)
			template(c, "one", "gpu")
			c.Add(gangOf(2, 0, claims("one"), young))
			madeClaim(c, "gang-worker-0")
			had := madeClaim(c, "gang-worker-1")
			had.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}},
			}}}}
			had.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "gpu.example.com", Pool: "n1", Device: "d0"}}
		}},
		{name: "for an extended resource, without a device plugin", code: answer.Fits, exit: 3, not: []string{"not evaluated"}, build: func(c *clustertest.Cluster) {
			c.S.Server.Version = "v1.37.0"
			c.Nodes(1, 4).Runs("a", 4, "n1").Node("n2", 0)
			devices(c, 4)
			c.S.ResourceSlices = c.S.ResourceSlices[1:]
			resource := "nvidia.com/gpu"
			c.S.DeviceClasses[0].Spec.ExtendedResourceName = &resource
			c.Add(gangOf(1, 4, young))
		}},
		{name: "for an extended resource, of devices that have no number", code: answer.Fits, exit: 3, never: []answer.Code{answer.ResourceNotOffered}, wantText: []string{"resource nvidia.com/gpu from DeviceClass gpu"}, build: func(c *clustertest.Cluster) {
			c.S.Server.Version = "v1.37.0"
			c.Nodes(1, 0)
			devices(c, 4)
			every := true
			c.S.ResourceSlices[0].Spec.NodeName, c.S.ResourceSlices[0].Spec.AllNodes = nil, &every
			resource := "nvidia.com/gpu"
			c.S.DeviceClasses[0].Spec.ExtendedResourceName = &resource
			c.Add(gangOf(1, 4, young))
		}},
		{name: "for an extended resource, of devices that a job has by claims", code: answer.NodesBusy, exit: 3, wantText: []string{"4 of 8", "TFJob research/a holds 4 GPUs on n1"}, never: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			c.S.Server.Version = "v1.37.0"
			c.Nodes(2, 0)
			devices(c, 4)
			resource := "nvidia.com/gpu"
			c.S.DeviceClasses[0].Spec.ExtendedResourceName = &resource
			c.Add(other("a", 0, "n1"))
			taken(c, "n1", "d0", "a-worker-0")
			claim := c.S.ResourceClaims[0]
			for _, device := range []string{"d1", "d2", "d3"} {
				claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: "gpu.example.com", Pool: "n1", Device: device})
			}
			c.Add(gangOf(2, 4))
		}},
		{name: "with devices that nobody uses, on a cordoned node", code: answer.Fits, exit: 3, wantText: []string{"the devices that ResourceClaim gang-worker-0-r has are used by no pod, and where they are there is no room"}, never: []answer.Code{answer.NodeNotReady}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 1)
			template(c, "one", "gpu")
			c.Add(gangOf(1, 0, claims("one"), young))
			had := madeClaim(c, "gang-worker-0")
			had.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"n2"}}},
			}}}}
			had.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "gpu.example.com", Pool: "n2", Device: "d0"}}
			c.S.Nodes[1].Spec.Unschedulable = true
		}},
		{name: "of a driver that is gone from a node", code: answer.NoDevicePlugin, exit: 5, first: `^1 node \(n2\) looks like it has NVIDIA devices and publishes none of class gpu: DRA driver gpu.nvidia.com does not work there$`,
			wantText: []string{"with them it would fit an empty cluster", "no DaemonSet of a DRA driver for gpu.nvidia.com was found"}, never: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
				nvidiaDevices(c)
				c.S.ResourceSlices = c.S.ResourceSlices[:1]
				c.Add(gangOf(2, 0, claims("one")))
			}},
		{name: "of a driver that is gone, of which other nodes have too few all the same", code: answer.TooBig, exit: 6, never: []answer.Code{answer.NoDevicePlugin}, build: func(c *clustertest.Cluster) {
			nvidiaDevices(c)
			c.S.ResourceSlices = c.S.ResourceSlices[:1]
			c.Add(gangOf(3, 0, claims("one")))
		}},
		{name: "of a driver that is not there yet on a new node", code: answer.ScalingUp, exit: 3, first: "n2 is joining the cluster, and DRA driver gpu.nvidia.com has not published its devices yet", build: func(c *clustertest.Cluster) {
			nvidiaDevices(c)
			c.S.ResourceSlices = c.S.ResourceSlices[:1]
			c.S.Nodes[1].CreationTimestamp = metav1.NewTime(clustertest.Now.Add(-time.Minute))
			c.Add(gangOf(2, 0, claims("one")))
		}},
		{name: "of a class of which a driver that works publishes none", code: answer.TooBig, exit: 6, never: []answer.Code{answer.NoDevicePlugin}, build: func(c *clustertest.Cluster) {
			nvidiaDevices(c)
			mig := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "mig.nvidia.com"}}
			mig.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "x"`}}}
			c.S.DeviceClasses = append(c.S.DeviceClasses, mig)
			template(c, "mig", mig.Name)
			c.Add(gangOf(2, 0, claims("mig")))
		}},
		{name: "by a selector that no device matches", code: answer.TooBig, exit: 6, first: `^2 workers claim 1 device of class gpu each, 2 in all, and of the 2 that the whole cluster has 0 match device.driver == "x"; 0 of 2 members could have theirs$`,
			not: []string{"are there in all"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 0)
				devices(c, 1)
				template(c, "one", "gpu")
				c.S.ResourceClaimTemplates[0].Spec.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "x"`}}}
				c.Add(gangOf(2, 0, claims("one")))
			}},
		{name: "by a selector that fails", code: answer.TooBig, exit: 6, first: `of the 2 that the whole cluster has 0 match device.attributes\["gpu.example.com"\].model == "x" \(.*no such key.*\)`, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 1)
			template(c, "one", "gpu")
			c.S.ResourceClaimTemplates[0].Spec.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.attributes["gpu.example.com"].model == "x"`}}}
			c.Add(gangOf(2, 0, claims("one")))
		}},
		{name: "tainted", code: answer.GPUUnhealthy, exit: 5, first: "^devices on n2 are withheld, and the others are too few: 1/2 members fit$", wantText: []string{"device d0 of n2 has taint vendor/xid=79:NoSchedule"}, never: []answer.Code{answer.TooBig}, fix: "repair the devices of n2", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 1)
			c.S.ResourceSlices[1].Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "vendor/xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
			template(c, "one", "gpu")
			c.Add(gangOf(2, 0, claims("one")))
		}},
		{name: "tainted by a rule", code: answer.GPUUnhealthy, exit: 5, first: "^devices on n2 are withheld, and the others are too few: 1/2 members fit$", wantText: []string{"DeviceTaintRule sick gives 1 device of n2 taint vendor/xid:NoSchedule"},
			never: []answer.Code{answer.TooBig}, fix: "and then delete DeviceTaintRule sick", build: func(c *clustertest.Cluster) {
				c.Nodes(2, 0)
				devices(c, 1)
				rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "sick"}}
				rule.Spec.Taint = resourcev1.DeviceTaint{Key: "vendor/xid", Effect: resourcev1.DeviceTaintEffectNoSchedule}
				rule.Spec.DeviceSelector = &resourcev1.DeviceTaintSelector{Pool: &c.S.ResourceSlices[1].Spec.Pool.Name}
				c.Put(rule)
				template(c, "one", "gpu")
				c.Add(gangOf(2, 0, claims("one")))
			}},
		{name: "tainted by rules, of which one is in the way", code: answer.GPUUnhealthy, exit: 5, first: "^devices on n2 are withheld", wantText: []string{"DeviceTaintRule sick gives 1 device of n2 taint vendor/xid:NoSchedule"},
			not: []string{"unrelated", "elsewhere"}, fix: "and then delete DeviceTaintRule sick", build: func(c *clustertest.Cluster) {
				c.Nodes(3, 0)
				label(c, "class", "x", "x", "y")
				devices(c, 1)
				other := "other.example.com"
				aside := c.S.ResourceSlices[0].DeepCopy() // a driver whose devices the gang does not claim
				aside.Name, aside.Spec.Driver, aside.Spec.Pool.Name = "aside", other, "aside"
				c.S.ResourceSlices = append(c.S.ResourceSlices, aside)
				c.S.DeviceClasses[0].Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver != "other.example.com"`}}}
				rule := func(name string, of resourcev1.DeviceTaintSelector) {
					r := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name}}
					r.Spec.Taint, r.Spec.DeviceSelector = resourcev1.DeviceTaint{Key: "vendor/xid", Effect: resourcev1.DeviceTaintEffectNoSchedule}, &of
					c.Put(r)
				}
				rule("elsewhere", resourcev1.DeviceTaintSelector{Pool: &c.S.ResourceSlices[2].Spec.Pool.Name})
				rule("sick", resourcev1.DeviceTaintSelector{Pool: &c.S.ResourceSlices[1].Spec.Pool.Name})
				rule("unrelated", resourcev1.DeviceTaintSelector{Driver: &other})
				template(c, "one", "gpu")
				of := claims("one")
				c.Add(gangOf(2, 0, of, func(g *clustertest.Gang) {
					claim := g.Spec
					g.Spec = func(p *corev1.PodSpec) { claim(p); p.NodeSelector = map[string]string{"class": "x"} }
				}))
			}},
		{name: "on nodes that are not selected", code: answer.TooBig, exit: 6, first: "^2 workers claim 1 device of class gpu each, 2 in all, and the nodes that it may use have 1; 1 of 2 members could have theirs$", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			label(c, "class", "x")
			devices(c, 1)
			template(c, "one", "gpu")
			in := claims("one")
			c.Add(gangOf(2, 0, in, func(g *clustertest.Gang) {
				of := g.Spec
				g.Spec = func(p *corev1.PodSpec) {
					of(p)
					p.NodeSelector = map[string]string{"class": "x"}
				}
			}))
		}},
		{name: "of a pool that is not complete", code: answer.GPUUnhealthy, exit: 5, first: "devices on n2 are withheld", wantText: []string{"driver gpu.example.com has published 1 of 2 slices of pool n2"}, never: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 1)
			c.S.ResourceSlices[1].Spec.Pool.ResourceSliceCount = 2
			template(c, "one", "gpu")
			c.Add(gangOf(2, 0, claims("one")))
		}},
		{name: "free", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 1)
			template(c, "one", "gpu")
			c.Add(gangOf(2, 0, claims("one"), young))
		}},
		{name: "taken by a job that ends", code: answer.DRAUnallocatable, exit: 3, first: "^2 workers claim 1 device of class gpu each, 2 in all, and 1 of 2 is free; 1 of 2 members could have theirs$", wantText: []string{"TFJob research/a holds 1 device on n1"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 1)
			template(c, "one", "gpu")
			name := "a-worker-0-r"
			o := other("a", 0, "n1")
			o.Spec = func(p *corev1.PodSpec) {
				p.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimName: &name}}
			}
			c.Add(o)
			taken(c, "n1", "d0", "a-worker-0")
			c.Add(gangOf(2, 0, claims("one")))
		}},
		{name: "of a claim that its members share, where there is no room for all", code: answer.DRAUnallocatable, exit: 3, first: "its members share ResourceClaim mn, and have to be where its devices are, in pool n1: 1 of 2 members find a place together", not: []string{"allocated to others"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			devices(c, 1)
			name := "mn"
			taken(c, "n1", "d0", "mn")
			claim := c.S.ResourceClaims[0]
			claim.Namespace, claim.Name = "team", name
			claim.Status.ReservedFor[0] = resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: "keeper-worker-0", UID: "Pod:team/keeper-worker-0"}
			claim.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}
			share := func(p *corev1.PodSpec) {
				p.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimName: &name}}
			}
			c.Add(clustertest.Gang{Name: "keeper", Workers: 1, GPUs: 4, Nodes: []string{"n1"}, Spec: share}).Add(gangOf(2, 4, spec(share)))
		}},
		{name: "too few in the whole cluster", code: answer.TooBig, exit: 6, first: "^3 workers claim 1 device of class gpu each, 3 in all, and the whole cluster has 2; 2 of 3 members could have theirs$", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 1)
			template(c, "one", "gpu")
			c.Add(gangOf(3, 0, claims("one")))
		}},
		{name: "no such template", code: answer.DRAUnallocatable, exit: 4, first: `ResourceClaimTemplate "oen" does not exist in namespace team`, wantText: []string{"did you mean one"}, fix: "name one instead of oen", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 1)
			template(c, "one", "gpu")
			c.Add(gangOf(2, 0, claims("oen")))
		}},
		{name: "no such claim", code: answer.DRAUnallocatable, exit: 4, first: `ResourceClaim "mine" does not exist`, build: func(c *clustertest.Cluster) {
			mine := "mine"
			c.Nodes(2, 0)
			devices(c, 1)
			c.Add(gangOf(1, 0, spec(func(p *corev1.PodSpec) {
				p.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimName: &mine}}
			})))
		}},
		{name: "no such class", code: answer.DRAUnallocatable, exit: 4, first: `DeviceClass "gpus" does not exist, so there are no devices for Worker; there are: gpu`, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 1)
			template(c, "one", "gpus")
			c.Add(gangOf(2, 0, claims("one")))
		}},
		{name: "no driver publishes devices", code: answer.DRAUnallocatable, exit: 5, first: "the driver of class gpu does not run", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			c.Put(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
			template(c, "one", "gpu")
			c.Add(gangOf(2, 0, claims("one")))
		}},
		{name: "templates may not be listed", code: answer.Fits, exit: 3, never: []answer.Code{answer.DRAUnallocatable}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 1)
			c.S.Denied = []snapshot.Denial{{Resource: "resourceclaimtemplates.resource.k8s.io"}}
			c.Add(gangOf(2, 0, claims("one"), young))
		}},
	})
}
