package replay

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	gangs "github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// gpu is what the jobs request, perNode how many of them a node has.
const (
	gpu     = corev1.ResourceName("nvidia.com/gpu")
	perNode = 8
)

// cluster is nodes with the pods that run on them, as the engine's snapshot has them, and the planner's index of them.
type cluster struct {
	infos  []fwk.NodeInfo
	byName map[string]*framework.NodeInfo
	free   int // GPUs that no pod uses
	index  *placement.Index
	alone  *placement.Objects
}

func newCluster(nodes int) *cluster {
	c := &cluster{byName: map[string]*framework.NodeInfo{}, free: nodes * perNode, index: placement.NewIndex(), alone: &placement.Objects{}}
	for i := range nodes {
		list := corev1.ResourceList{gpu: *resource.NewQuantity(perNode, resource.DecimalSI), corev1.ResourcePods: resource.MustParse("110")}
		name := fmt.Sprintf("n%03d", i)
		info := framework.NewNodeInfo()
		info.SetNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
			Status: corev1.NodeStatus{
				Capacity: list, Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
		c.infos, c.byName[name] = append(c.infos, info), info
	}
	return c
}

func (c *cluster) add(pod *corev1.Pod) { c.byName[pod.Spec.NodeName].AddPod(pod) }

func (c *cluster) remove(pod *corev1.Pod) error {
	if err := c.byName[pod.Spec.NodeName].RemovePod(klog.Background(), pod); err != nil {
		return fmt.Errorf("take pod %s off its node: %w", pod.Name, err)
	}
	return nil
}

// Cluster implements aging.View.
func (c *cluster) Cluster([]*corev1.Pod) (*placement.Cluster, error) {
	return c.index.Update(c.infos, c.alone), nil
}

// Roles implements aging.View: the members of a job are alike.
func (c *cluster) Roles(_ *placement.Cluster, pods []*corev1.Pod, _ gangs.Topology) ([]placement.Role, error) {
	return []placement.Role{{Name: "worker", Pod: pods[0], Count: int32(len(pods))}}, nil
}

// lister lists the nodes for the ledger of claims, which only looks nodes up.
type lister struct {
	fwk.NodeInfoLister
	cluster *cluster
}

// Get implements fwk.NodeInfoLister.
func (l lister) Get(name string) (fwk.NodeInfo, error) {
	info, ok := l.cluster.byName[name]
	if !ok {
		return nil, fmt.Errorf("no node %s", name)
	}
	return info, nil
}
