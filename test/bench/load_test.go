package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"golang.org/x/sync/errgroup"
)

// atOnce is how many requests are on their way at a time.
const atOnce = 32

// loader creates objects on an API server.
type loader struct {
	typed   kubernetes.Interface
	dynamic dynamic.Interface
	count   atomic.Int64
	// replicaSets and jobs are the uids of what owns pods, by NAMESPACE/NAME.
	replicaSets, jobUIDs map[string]types.UID
	daemonSet            types.UID
}

func newLoader(b *testing.B, kubeconfig string) *loader {
	b.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	config.QPS = -1
	l := &loader{replicaSets: map[string]types.UID{}, jobUIDs: map[string]types.UID{}}
	l.dynamic, err = dynamic.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	config.ContentType = runtime.ContentTypeProtobuf
	l.typed, err = kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func (l *loader) created() int { return int(l.count.Load()) }

// each makes things at the same time, and counts them.
func each[T any](ctx context.Context, l *loader, list []T, f func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, item := range list {
		group.Go(func() error {
			if err := f(ctx, item); err != nil {
				return err
			}
			l.count.Add(1)
			return nil
		})
	}
	return group.Wait()
}

// namespaces come with the account of their pods: no controller makes it.
func (l *loader) namespaces(ctx context.Context, _ *planned) error {
	names := []string{"monitoring"}
	for i := range teams {
		names = append(names, fmt.Sprintf("team-%02d", i))
	}
	return each(ctx, l, names, func(ctx context.Context, name string) error {
		_, err := l.typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		_, err = l.typed.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func (l *loader) nodes(ctx context.Context, p *planned) error {
	return each(ctx, l, p.machines, func(ctx context.Context, m *machine) error {
		n, err := l.typed.CoreV1().Nodes().Create(ctx, node(m, p.now), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		n.Spec.Taints = nil // admission takes every new node for one that is not ready
		if _, err := l.typed.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{}); err != nil {
			return err
		}
		_, err = l.typed.StorageV1().CSINodes().Create(ctx, csiNode(m), metav1.CreateOptions{})
		return err
	})
}

// services are a DaemonSet, and Deployments with a ReplicaSet each.
func (l *loader) services(ctx context.Context, p *planned) error {
	ds, err := l.typed.AppsV1().DaemonSets("monitoring").Create(ctx, daemonSet(), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	l.daemonSet = ds.UID
	made := make([]*appsv1.ReplicaSet, len(p.services))
	at := make([]int, len(p.services))
	for i := range at {
		at[i] = i
	}
	err = each(ctx, l, at, func(ctx context.Context, i int) error {
		s := p.services[i]
		d, err := l.typed.AppsV1().Deployments(s.namespace).Create(ctx, deployment(s), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		made[i], err = l.typed.AppsV1().ReplicaSets(s.namespace).Create(ctx, replicaSet(s, d), metav1.CreateOptions{})
		return err
	})
	for _, rs := range made {
		if rs != nil {
			l.replicaSets[rs.Namespace+"/"+rs.Name] = rs.UID
		}
	}
	return err
}

func (l *loader) jobs(ctx context.Context, p *planned) error {
	made := make([]*unstructured.Unstructured, len(p.jobs))
	at := make([]int, len(p.jobs))
	for i := range at {
		at[i] = i
	}
	err := each(ctx, l, at, func(ctx context.Context, i int) error {
		j := p.jobs[i]
		u, err := l.withStatus(ctx, tfJob(j, p.now), tfJobs.Resource)
		if err != nil {
			return err
		}
		made[i] = u
		_, err = l.withStatus(ctx, podGroup(j, u), podGroups.Resource)
		return err
	})
	for _, u := range made {
		if u != nil {
			l.jobUIDs[u.GetNamespace()+"/"+u.GetName()] = u.GetUID()
		}
	}
	return err
}

// withStatus creates an object whose status is a subresource.
func (l *loader) withStatus(ctx context.Context, u *unstructured.Unstructured, resource string) (*unstructured.Unstructured, error) {
	client := l.dynamic.Resource(u.GroupVersionKind().GroupVersion().WithResource(resource)).Namespace(u.GetNamespace())
	created, err := client.Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create %s %s: %w", resource, u.GetName(), err)
	}
	status, ok := u.Object["status"]
	if !ok {
		return created, nil
	}
	created.Object["status"] = status
	return client.UpdateStatus(ctx, created, metav1.UpdateOptions{})
}

// pods creates every pod on its node and writes its status.
func (l *loader) pods(ctx context.Context, p *planned) error {
	all, err := l.plannedPods(p)
	if err != nil {
		return err
	}
	return each(ctx, l, all, func(ctx context.Context, pod *corev1.Pod) error {
		client := l.typed.CoreV1().Pods(pod.Namespace)
		created, err := client.Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create pod %s: %w", pod.Name, err)
		}
		created.Status = pod.Status
		_, err = client.UpdateStatus(ctx, created, metav1.UpdateOptions{})
		return err
	})
}

func (l *loader) plannedPods(p *planned) ([]*corev1.Pod, error) {
	var all []*corev1.Pod
	for _, m := range p.machines {
		all = append(all, daemonPod(m, l.daemonSet, p.now))
	}
	for _, s := range p.services {
		uid := l.replicaSets[s.namespace+"/"+s.replicaSet()]
		if uid == "" {
			return nil, errors.New("no ReplicaSet of " + s.name)
		}
		for i := range s.nodes {
			all = append(all, servicePod(s, i, uid, p.now))
		}
	}
	for _, j := range p.jobs {
		uid := l.jobUIDs[j.namespace+"/"+j.name]
		if uid == "" {
			return nil, errors.New("no TFJob " + j.name)
		}
		for i := range j.workers {
			all = append(all, member(j, i, uid, p.now))
		}
	}
	return all, nil
}
