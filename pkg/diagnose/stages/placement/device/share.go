package device

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// shareAnnotations are those of a pod by which it requests a part of a GPU from KAI. No resource of a node shows the parts.
var shareAnnotations = []string{"gpu-fraction", "gpu-memory"}

// gpuMemory is the label of nodes by which KAI knows how much memory their GPUs have.
const gpuMemory = "nvidia.com/gpu.memory"

// sharedGPU is the resource that KAI shares.
const sharedGPU corev1.ResourceName = "nvidia.com/gpu"

// shareOf is the part of a GPU that a pod requests by annotation, as users wrote it; empty without.
func shareOf(pod *corev1.Pod) string {
	for _, name := range shareAnnotations {
		if value := pod.Annotations[name]; value != "" {
			return name + " " + value
		}
	}
	return ""
}

// Shares finds that members request parts of GPUs, and there is not a whole one free for each: whether those in use have a part left is not known. A
// whole one each is always enough.
func Shares(c *stage.Context, out *stage.Result) {
	if c.Gang.Decl == nil || c.Gang.Decl.Key.Dialect != gang.KAI {
		return
	}
	i := slices.IndexFunc(c.Request.Roles, func(r placement.Role) bool { return shareOf(r.Pod) != "" })
	if i < 0 {
		return
	}
	whole := wholeDevices(c.Request)
	if c.For(whole).Fit(c.Cluster(), nil).Fits() {
		byMemory := c.Request.Roles[i].Pod.Annotations["gpu-memory"] != ""
		if byMemory && !slices.ContainsFunc(c.Cluster().Nodes(), func(n *corev1.Node) bool { return n.Labels[gpuMemory] != "" }) {
			out.Unmodelled = append(out.Unmodelled, "how much memory GPUs have, which pods request by annotation gpu-memory: no node has label "+gpuMemory)
		}
		return
	}
	role := c.Request.Roles[i]
	f := stage.Found(answer.SearchIncomplete, "whether there is room is not known: each %s requests a part of a GPU (%s), there is not a whole one free for each, and what is left of those in use only the scheduler knows",
		phrase.Member(role.Name), phrase.Shorten(shareOf(role.Pod), maxShare)).Fact("role", phrase.Role(role.Name)).Fact("share", phrase.Shorten(shareOf(role.Pod), maxShare))
	var nodes []string
	for _, n := range c.Cluster().Nodes() {
		nodes = append(nodes, n.Name)
	}
	for _, line := range c.ConsumersOn(nodes, sharedGPU) {
		f.Detail("%s", line)
	}
	out.Add(f)
}

// maxShare is how much of an annotation is repeated, in bytes.
const maxShare = 64

// wholeDevices is a request whose members that request parts of a GPU request a whole one instead.
func wholeDevices(request view.PlacementRequest) view.PlacementRequest {
	request.Roles = slices.Clone(request.Roles)
	for i := range request.Roles {
		r := &request.Roles[i]
		if shareOf(r.Pod) == "" || len(r.Pod.Spec.Containers) == 0 {
			continue
		}
		r.Pod = r.Pod.DeepCopy()
		podrequest.Put(&r.Pod.Spec.Containers[0].Resources.Requests, sharedGPU, *resource.NewQuantity(1, resource.DecimalSI))
	}
	if request.Shape != "" {
		request.Shape = fmt.Sprint(request.Shape, "\nwith a whole GPU for each part")
	}
	return request
}
