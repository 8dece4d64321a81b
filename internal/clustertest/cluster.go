// Package clustertest builds small clusters for tests: nodes, jobs that run, services, and a gang that waits.
package clustertest

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// Now is the moment of every cluster.
var Now = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)

// Scheduler is the schedulerName that is alive in every cluster.
const Scheduler = "gang"

// Cluster is a cluster under construction. Methods return it, or what they added, to be changed further.
type Cluster struct {
	S *snapshot.Snapshot
}

// New returns a cluster with a healthy operator and a healthy scheduler.
func New() *Cluster {
	c := &Cluster{S: &snapshot.Snapshot{At: Now}}
	c.S.Server = snapshot.Server{Version: "v1.37.1", Resources: []string{"tfjobs.kubeflow.org/v1", "pytorchjobs.kubeflow.org/v1", "mpijobs.kubeflow.org/v1", "podgroups.scheduling.x-k8s.io/v1alpha1",
		"podgroups.scheduling.volcano.sh/v1beta1", "queues.scheduling.volcano.sh/v1beta1"}}
	c.Deployment("kubeflow", "training-operator", "kubeflow/training-operator:v1", "--gang-scheduler-name="+Scheduler)
	c.Deployment("gangctl-system", "gang-scheduler", "ghcr.io/gangctl/gang-scheduler:v1", "--scheduler-name="+Scheduler)
	c.Lease("gang-scheduler", 2*time.Second)
	c.Namespace("team")
	return c
}

// Schedules adds another scheduler that is alive.
func (c *Cluster) Schedules(name string) *Cluster {
	if name == corev1.DefaultSchedulerName {
		c.Lease("kube-scheduler", 2*time.Second)
		return c
	}
	c.Deployment(name+"-system", name, name+":v1", "--scheduler-name="+name)
	c.Lease(name, 2*time.Second)
	return c
}

// GangScheduler sets the scheduler that the operator gives to gangs; "" if it leaves them alone.
func (c *Cluster) GangScheduler(name string) *Cluster {
	args := []string{}
	if name != "" {
		args = append(args, "--gang-scheduler-name="+name)
	}
	c.S.Deployments[0].Spec.Template.Spec.Containers[0].Args = args
	return c
}

// Done finishes the snapshot.
func (c *Cluster) Done() *snapshot.Snapshot {
	c.S.Finish()
	return c.S
}

func (c *Cluster) put(obj runtime.Object) {
	if err := c.S.Put(obj); err != nil {
		panic(err) // a mistake in a test
	}
}

// Put adds an object.
func (c *Cluster) Put(obj runtime.Object) *Cluster {
	c.put(obj)
	return c
}

// Object adds an object that has no type.
func (c *Cluster) Object(content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	c.put(u)
	return u
}

// Namespace adds a namespace.
func (c *Cluster) Namespace(name string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.put(ns)
	return ns
}

// Deployment adds a Deployment with one ready pod and one container.
func (c *Cluster) Deployment(namespace, name, image string, args ...string) *appsv1.Deployment {
	one := int32(1)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Replicas = &one
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: name, Image: image, Args: args}}
	d.Status.ReadyReplicas = 1
	c.put(d)
	return d
}

// Lease adds a lease that was renewed some time ago.
func (c *Cluster) Lease(name string, ago time.Duration) *coordinationv1.Lease {
	at := metav1.NewMicroTime(Now.Add(-ago))
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "gangctl-system", Name: name}}
	l.Spec.RenewTime = &at
	c.put(l)
	return l
}

// Node adds a node that is Ready, with 96 cpu, 768Gi memory, 110 pods and some GPUs.
func (c *Cluster) Node(name string, gpus int64) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name},
		CreationTimestamp: Ago(240 * time.Hour)}}
	n.Status.Allocatable = List("cpu", "96", "memory", "768Gi", "ephemeral-storage", "1Ti", "pods", "110")
	if gpus > 0 {
		n.Status.Allocatable["nvidia.com/gpu"] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	n.Status.Capacity = n.Status.Allocatable.DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: Ago(240 * time.Hour)}}
	c.put(n)
	return n
}

// Nodes adds nodes n1 to nCOUNT.
func (c *Cluster) Nodes(count int, gpus int64) *Cluster {
	for i := range count {
		c.Node(fmt.Sprintf("n%d", i+1), gpus)
	}
	return c
}

// NotReady makes a node away for a while.
func NotReady(n *corev1.Node, ago time.Duration) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: Ago(ago)}}
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule})
}

// List is a resource list from pairs of name and quantity.
func List(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// Ago is a moment before Now.
func Ago(d time.Duration) metav1.Time { return metav1.NewTime(Now.Add(-d)) }

// Event adds an event about an object.
func (c *Cluster) Event(kind, namespace, name, by, reason, message string, ago time.Duration) *corev1.Event {
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%d", name, len(c.S.Events))},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name}, Reason: reason, Message: message,
		Type: corev1.EventTypeWarning, ReportingController: by, Count: 1, FirstTimestamp: Ago(ago), LastTimestamp: Ago(ago)}
	c.put(e)
	return e
}

func uid(kind, namespace, name string) types.UID {
	return types.UID(kind + ":" + namespace + "/" + name)
}
