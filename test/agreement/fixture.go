package agreement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/sandbox/kubelet"
)

// fixture is one scenario on the cluster.
type fixture struct {
	*Stage
	s         Scenario
	namespace string
	gone      map[string]bool // gangs that were taken away
	bound     map[string]bool // claims that got a volume
}

// stay is the finalizer that keeps a pod in Terminating.
const stay = "agreement.gangctl.dev/stay"

// nodesKnownLabel goes to the last node when all nodes are as they should be.
const nodesKnownLabel = "agreement.gangctl.dev/nodes-known"

// set puts nodes, volumes and residents on the cluster, and waits until the scheduler knows them.
func (c *fixture) set(ctx context.Context) error {
	core := c.Client.Typed.CoreV1()
	if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	if err := each(c.s.Nodes, func(n *corev1.Node) error {
		n = n.DeepCopy()
		for i := range n.Status.Conditions {
			n.Status.Conditions[i].LastHeartbeatTime, n.Status.Conditions[i].LastTransitionTime = metav1.Now(), metav1.Now()
		}
		_, err := core.Nodes().Create(ctx, n, metav1.CreateOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("create nodes: %w", err)
	}
	if err := c.storage(ctx); err != nil {
		return err
	}
	if err := c.until(ctx, "the namespace has its account", func(ctx context.Context) (bool, error) {
		_, err := core.ServiceAccounts(c.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, ignoreNotFound(err)
	}); err != nil {
		return err
	}
	if err := c.nodesKnown(ctx); err != nil {
		return err
	}
	if c.s.Defaults != nil {
		limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "defaults"}, Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: c.s.Defaults}},
		}}
		if _, err := core.LimitRanges(c.namespace).Create(ctx, limits, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create LimitRange: %w", err)
		}
	}
	return c.reside(ctx)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// storage creates volumes, claims, and what nodes have for resource claims.
func (c *fixture) storage(ctx context.Context) error {
	core, dra := c.Client.Typed.CoreV1(), c.Client.Typed.ResourceV1()
	volumes := map[string]*corev1.PersistentVolume{}
	for _, pv := range c.s.Volumes {
		made, err := core.PersistentVolumes().Create(ctx, pv.DeepCopy(), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create volume %s: %w", pv.Name, err)
		}
		made.Status.Phase = corev1.VolumeAvailable
		if volumes[pv.Name], err = core.PersistentVolumes().UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("offer volume %s: %w", pv.Name, err)
		}
	}
	for _, pvc := range c.s.Claims {
		made, err := core.PersistentVolumeClaims(c.namespace).Create(ctx, pvc.DeepCopy(), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create claim %s: %w", pvc.Name, err)
		}
		pv := volumes[pvc.Spec.VolumeName]
		if pv == nil {
			continue
		}
		pv.Spec.ClaimRef = refTo(made)
		if pv, err = core.PersistentVolumes().Update(ctx, pv, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("bind volume %s: %w", pv.Name, err)
		}
		if err := c.bindClaim(ctx, made, pv); err != nil {
			return err
		}
	}
	for _, s := range c.s.Devices {
		if _, err := dra.ResourceSlices().Create(ctx, s, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create ResourceSlice %s: %w", s.Name, err)
		}
	}
	for _, t := range c.s.Templates {
		if _, err := dra.ResourceClaimTemplates(c.namespace).Create(ctx, t, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create ResourceClaimTemplate %s: %w", t.Name, err)
		}
	}
	return nil
}

// nodesKnown waits until Kubernetes has set the taints that go with the state of the nodes, and the scheduler has seen all that.
// A pod whose node selector matches the node that is labelled last shows the latter: the scheduler's informer delivers nodes in order.
func (c *fixture) nodesKnown(ctx context.Context) error {
	core := c.Client.Typed.CoreV1()
	if err := c.until(ctx, "nodes have the taints of their state", func(ctx context.Context) (bool, error) {
		list, err := core.Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return len(list.Items) == len(c.s.Nodes) && !slices.ContainsFunc(list.Items, func(n corev1.Node) bool { return !readyNode(&n) }), nil
	}); err != nil {
		return err
	}
	last := c.s.Nodes[len(c.s.Nodes)-1].Name
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, nodesKnownLabel)
	if _, err := core.Nodes().Patch(ctx, last, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("label node %s: %w", last, err)
	}
	scout := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "scout"}, Spec: corev1.PodSpec{
		SchedulerName: schedulerName, NodeSelector: map[string]string{nodesKnownLabel: "true"},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:  []corev1.Container{{Name: "main", Image: "x"}},
	}}
	if _, err := core.Pods(c.namespace).Create(ctx, scout, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create pod scout: %w", err)
	}
	if err := c.until(ctx, "the scheduler knows the nodes", func(context.Context) (bool, error) {
		p := c.seen(c.namespace)[scout.Name]
		return p != nil && p.Spec.NodeName != "", nil
	}); err != nil {
		return err
	}
	return c.remove(ctx, scout.Name)
}

// readyNode reports whether a node has the taints of its state, and no others.
func readyNode(n *corev1.Node) bool {
	has := func(key string) bool {
		return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	}
	return has(corev1.TaintNodeUnschedulable) == n.Spec.Unschedulable && has(corev1.TaintNodeNotReady) == failed(n)
}

// reside creates the residents and waits until each is as it should be.
func (c *fixture) reside(ctx context.Context) error {
	pods := c.Client.Typed.CoreV1().Pods(c.namespace)
	for _, r := range c.s.Residents {
		p := r.Pod.DeepCopy()
		if r.Ended {
			p.Annotations = map[string]string{kubelet.RunForAnnotation: "1ms"}
		}
		if r.Terminating {
			p.Finalizers = []string{stay}
		}
		if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create pod %s: %w", p.Name, err)
		}
		if r.Terminating {
			if err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil {
				return fmt.Errorf("delete pod %s: %w", p.Name, err)
			}
		}
	}
	return c.until(ctx, "the residents are at rest", func(context.Context) (bool, error) {
		seen := c.seen(c.namespace)
		for _, r := range c.s.Residents {
			if !r.rests(seen[r.Pod.Name], c.s.Nodes) {
				return false, nil
			}
		}
		return true, nil
	})
}

// rests reports whether nothing more will happen to a resident by itself.
func (r Resident) rests(p *corev1.Pod, nodes []*corev1.Node) bool {
	switch {
	case p == nil:
		return false
	case r.Ended:
		return p.Status.Phase == corev1.PodSucceeded
	case r.Terminating:
		return p.DeletionTimestamp != nil
	case p.Spec.NodeName == "":
		return ReadOutcome([]*corev1.Pod{p}).Refused > 0
	}
	dead := slices.ContainsFunc(nodes, func(n *corev1.Node) bool { return n.Name == p.Spec.NodeName && failed(n) })
	return dead || p.Status.Phase == corev1.PodRunning
}

// remove deletes pods at once, and waits until they are gone.
func (c *fixture) remove(ctx context.Context, names ...string) error {
	pods := c.Client.Typed.CoreV1().Pods(c.namespace)
	at := int64(0)
	if err := each(names, func(name string) error {
		return ignoreNotFound(pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &at}))
	}); err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	if err := c.until(ctx, "pods are gone: "+strings.Join(names, " "), func(context.Context) (bool, error) {
		seen := c.seen(c.namespace)
		return !slices.ContainsFunc(names, func(name string) bool { return seen[name] != nil }), nil
	}); err != nil {
		return err
	}
	return c.freeDevices(ctx)
}

// tearDown removes the scenario. The namespace controller deletes the namespace some time later.
func (c *fixture) tearDown(ctx context.Context) error {
	core := c.Client.Typed.CoreV1()
	if err := c.Client.Dynamic.Resource(jobs).Namespace(c.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete TFJobs: %w", err)
	}
	seen := c.seen(c.namespace)
	var names []string
	for name, p := range seen {
		names = append(names, name)
		if len(p.Finalizers) == 0 {
			continue
		}
		if _, err := core.Pods(c.namespace).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); ignoreNotFound(err) != nil {
			return fmt.Errorf("let pod %s go: %w", name, err)
		}
	}
	if err := c.remove(ctx, names...); err != nil {
		return err
	}
	at := int64(0)
	if err := each(c.s.Nodes, func(n *corev1.Node) error {
		return ignoreNotFound(core.Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{GracePeriodSeconds: &at}))
	}); err != nil {
		return fmt.Errorf("delete nodes: %w", err)
	}
	for _, s := range c.s.Devices {
		if err := ignoreNotFound(c.Client.Typed.ResourceV1().ResourceSlices().Delete(ctx, s.Name, metav1.DeleteOptions{})); err != nil {
			return fmt.Errorf("delete ResourceSlice %s: %w", s.Name, err)
		}
	}
	for _, pv := range c.s.Volumes {
		if err := ignoreNotFound(core.PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{})); err != nil {
			return fmt.Errorf("delete volume %s: %w", pv.Name, err)
		}
	}
	if err := ignoreNotFound(core.Namespaces().Delete(ctx, c.namespace, metav1.DeleteOptions{})); err != nil {
		return fmt.Errorf("delete namespace %s: %w", c.namespace, err)
	}
	return nil
}

// namespaceOf is the namespace of a scenario, another one each time it is played.
func namespaceOf(seed uint64, now time.Time) string {
	return fmt.Sprintf("agreement-%d-%x", seed, now.UnixNano()&0xffffff)
}
