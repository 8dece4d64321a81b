package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/intern"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/page"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/prune"
)

// collectEnv makes the test binary read a cluster in one of the ways of BenchmarkCollection, and end.
const collectEnv = "GANGCTL_BENCH_COLLECT"

// ways are those in which the pods and the nodes of a cluster can be read. What pruning and interning are worth, ADR 0026
// reads off here.
var ways = map[string]func(context.Context, *kube.Client) (any, error){
	// What every other way costs before it reads anything.
	"idle": func(ctx context.Context, c *kube.Client) (any, error) { return c.Release(ctx) },
	// As why-pending reads them: pruned, interned, from one page that is decoded as it arrives.
	"collect": func(ctx context.Context, c *kube.Client) (any, error) {
		return collect.Collect(ctx, c, collect.Options{Namespace: subjectNamespace, Name: subjectName, Now: time.Now,
			Without: []string{"csinodes", "deployments", "replicasets", "daemonsets"}})
	},
	// With everything else that why-pending reads.
	"collect-all": func(ctx context.Context, c *kube.Client) (any, error) {
		return collect.Collect(ctx, c, collect.Options{Namespace: subjectNamespace, Name: subjectName, Now: time.Now})
	},
	// The typed lists of client-go in pages, of which fields are dropped once they are decoded.
	"plain": plain,
	// The same fields left out before decoding.
	"prune": func(ctx context.Context, c *kube.Client) (any, error) { return streamed(ctx, c, pruned) },
	// What is equal held once, but the fields are dropped after decoding.
	"intern": func(ctx context.Context, c *kube.Client) (any, error) { return streamed(ctx, c, interned) },
}

// BenchmarkCollection reads 5,000 nodes and 50,000 pods, each way in a process of its own, from a server without a control
// plane. MB-resident is the most that the process had at any moment, as the kernel counts it (VmHWM); it depends on when garbage was
// collected last. MB-live is what is in use when all is read.
func BenchmarkCollection(b *testing.B) {
	kubeconfig := serve(b, pods(b)).kubeconfig
	for _, way := range []string{"idle", "collect", "collect-all", "plain", "prune", "intern"} {
		b.Run(way, func(b *testing.B) {
			output := repeat(b, kubeconfig, 0, "env", "-u", measureEnv, collectEnv+"="+way, os.Args[0])
			live, err := strconv.ParseFloat(strings.TrimSpace(output), 64)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(live/1e6, "MB-live")
		})
	}
}

// readCluster reads the cluster of KUBECONFIG in a way, and prints how much of the heap is in use then.
func readCluster(ctx context.Context, way string) error {
	read, ok := ways[way]
	if !ok {
		return fmt.Errorf("%s=%s: no such way", collectEnv, way)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kube.NewClient(config)
	if err != nil {
		return err
	}
	all, err := read(ctx, client)
	if err != nil {
		return err
	}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	_, err = fmt.Println(stats.HeapAlloc)
	runtime.KeepAlive(all)
	return err
}

func plain(ctx context.Context, c *kube.Client) (any, error) {
	var all []apiruntime.Object
	pods := pager.New(func(ctx context.Context, o metav1.ListOptions) (apiruntime.Object, error) {
		return c.Typed.CoreV1().Pods("").List(ctx, o)
	})
	pods.PageSize = 5000
	err := pods.EachListItem(ctx, metav1.ListOptions{}, func(obj apiruntime.Object) error {
		p := *obj.(*corev1.Pod) // a copy, that the page may go
		dropFromPod(&p)
		all = append(all, &p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	nodes := pager.New(func(ctx context.Context, o metav1.ListOptions) (apiruntime.Object, error) {
		return c.Typed.CoreV1().Nodes().List(ctx, o)
	})
	nodes.PageSize = 5000
	return all, nodes.EachListItem(ctx, metav1.ListOptions{}, func(obj apiruntime.Object) error {
		n := *obj.(*corev1.Node)
		dropFromNode(&n)
		all = append(all, &n)
		return nil
	})
}

// dropFromPod drops what collect leaves out of a pod that runs.
func dropFromPod(p *corev1.Pod) {
	p.ManagedFields = nil
	delete(p.Annotations, "k8s.v1.cni.cncf.io/network-status")
	s := &p.Spec
	for i, c := range s.Containers {
		s.Containers[i] = corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, Ports: c.Ports}
	}
	s.Volumes, s.DNSPolicy, s.SecurityContext, s.EnableServiceLinks, s.DeprecatedServiceAccount = nil, "", nil, nil, ""
	p.Status = corev1.PodStatus{Phase: p.Status.Phase, StartTime: p.Status.StartTime, ContainerStatuses: p.Status.ContainerStatuses}
	for i, c := range p.Status.ContainerStatuses {
		state := corev1.ContainerState{Waiting: c.State.Waiting}
		if c.State.Running != nil {
			state.Running = &corev1.ContainerStateRunning{}
		}
		if t := c.State.Terminated; t != nil {
			state.Terminated = &corev1.ContainerStateTerminated{Reason: t.Reason, ExitCode: t.ExitCode, FinishedAt: t.FinishedAt}
		}
		p.Status.ContainerStatuses[i] = corev1.ContainerStatus{Name: c.Name, State: state, Ready: c.Ready, RestartCount: c.RestartCount, AllocatedResources: c.AllocatedResources, Resources: c.Resources}
	}
}

func dropFromNode(n *corev1.Node) {
	n.ManagedFields = nil
	n.Status.Images, n.Status.Addresses, n.Status.NodeInfo = nil, nil, corev1.NodeSystemInfo{}
}

// streamed reads as collect does: one page, an object at a time.
func streamed(ctx context.Context, c *kube.Client, decoders func() (pod, node func(raw []byte) (any, error), err error)) (any, error) {
	pod, node, err := decoders()
	if err != nil {
		return nil, err
	}
	var all []any
	list := func(path string, decode func([]byte) (any, error)) error {
		body, err := c.Typed.CoreV1().RESTClient().Get().AbsPath(path).Param("resourceVersion", "0").SetHeader("Accept", apiruntime.ContentTypeProtobuf).Stream(ctx)
		if err != nil {
			return err
		}
		_, err = page.Read(body, func(item page.Item) error {
			obj, err := decode(item.Raw)
			all = append(all, obj)
			return err
		})
		return errors.Join(err, body.Close())
	}
	if err := list("/api/v1/pods", pod); err != nil {
		return nil, err
	}
	return all, list("/api/v1/nodes", node)
}

// pruned decodes without the fields that dropFromPod and dropFromNode drop.
func pruned() (pod, node func([]byte) (any, error), err error) {
	paths := append(prune.Under([]string{"spec.containers"}, "env", "command", "args", "volumeMounts", "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy"),
		prune.Under([]string{"spec"}, "volumes", "dnsPolicy", "securityContext", "enableServiceLinks", "serviceAccount")...)
	paths = append(paths, prune.Under([]string{"status"}, "hostIP", "hostIPs", "podIP", "podIPs", "qosClass", "conditions")...)
	paths = append(paths, prune.Under([]string{"status.containerStatuses"}, "image", "imageID", "containerID", "started", "lastState", "state.running.startedAt", "state.terminated.containerID", "state.terminated.startedAt")...)
	ofPods, err := prune.Drop(append(paths, "metadata.managedFields")...).ForType(reflect.TypeFor[corev1.Pod]())
	if err != nil {
		return nil, nil, err
	}
	ofNodes, err := prune.Drop("metadata.managedFields", "status.images", "status.addresses", "status.nodeInfo").ForType(reflect.TypeFor[corev1.Node]())
	pod = func(raw []byte) (any, error) {
		raw, err := ofPods.Apply(raw)
		if err != nil {
			return nil, err
		}
		p := &corev1.Pod{}
		err = p.Unmarshal(raw)
		delete(p.Annotations, "k8s.v1.cni.cncf.io/network-status")
		return p, err
	}
	return pod, func(raw []byte) (any, error) {
		raw, err := ofNodes.Apply(raw)
		if err != nil {
			return nil, err
		}
		n := &corev1.Node{}
		return n, n.Unmarshal(raw)
	}, err
}

// interned decodes whole objects, shares what is equal in them, and drops fields of copies.
func interned() (pod, node func([]byte) (any, error), err error) {
	ofPods, ofNodes := intern.NewPool(), intern.NewPool()
	pod = func(raw []byte) (any, error) {
		p, err := ofPods.Pod(raw, intern.Kept{})
		if err != nil {
			return nil, err
		}
		p.Spec.Containers = append([]corev1.Container(nil), p.Spec.Containers...)
		p.Status.ContainerStatuses = append([]corev1.ContainerStatus(nil), p.Status.ContainerStatuses...)
		dropFromPod(p)
		return p, nil
	}
	return pod, func(raw []byte) (any, error) {
		n, err := ofNodes.Node(raw, intern.Kept{})
		if err == nil {
			dropFromNode(n)
		}
		return n, err
	}, nil
}
