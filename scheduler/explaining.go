package scheduler

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/explainer"
)

// explain has an explainer look at the gangs. What it needs beyond the pods and
// nodes, which the scheduler has anyway, it reads when a gang waits; what it may
// not read its answers do without, and say so.
func explain(g *gangs, client kubernetes.Interface, dyn dynamic.Interface, component string) *explainer.Explainer {
	instance, err := os.Hostname()
	if err != nil || instance == "" {
		instance = component
	}
	publisher := &explainer.Publisher{Events: client.CoreV1(), Regarding: g.regarding, Component: component, Instance: instance}
	cluster := &knowledge{
		client: &kube.Client{Typed: client, Dynamic: dyn}, pods: g.pods,
		nodes: g.factory.Core().V1().Nodes().Lister(), clock: clock.RealClock{},
	}
	return explainer.New(explainer.Config{
		Snapshot: cluster.snapshot, Members: g.roster.Pods, Publish: publisher.Publish, Published: publisher.Published,
		Same: published.Same, Clock: clock.RealClock{},
	})
}

// knowledge is what the scheduler knows of the cluster, and the rest.
type knowledge struct {
	client *kube.Client
	pods   *podInformers
	nodes  corelisters.NodeLister
	clock  clock.PassiveClock
}

// snapshot leaves out the events: what schedulers say the pods' conditions say,
// too, and a cluster may have more events than all else together.
func (k *knowledge) snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	s, err := collect.Collect(ctx, k.client, collect.Options{Without: []string{"pods", "nodes", "events"}, Now: k.clock.Now})
	if err != nil {
		return nil, err
	}
	// Not as the engine sees them, but as users do.
	s.Pods = append(s.Pods, k.pods.all()...)
	if s.Nodes, err = k.nodes.List(labels.Everything()); err != nil {
		return nil, err
	}
	s.Finish()
	return s, nil
}

// regarding refers to what users look at for a gang: its object, or a pod.
func (g *gangs) regarding(key gang.Key) *corev1.ObjectReference {
	if object, u, ok := (objects{roster: g.roster, feed: g.feed}).Get(key); ok && u != nil {
		return &corev1.ObjectReference{APIVersion: u.GetAPIVersion(), Kind: object.GroupKind.Kind, Namespace: key.Namespace, Name: u.GetName(), UID: u.GetUID()}
	}
	for _, pod := range g.roster.Pods(key) {
		return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	}
	return nil
}

// keyOf is the gang of a virtual group.
func keyOf(group types.NamespacedName) (gang.Key, bool) {
	key, err := gang.ParseVirtualName(group.Namespace, group.Name)
	return key, err == nil
}
