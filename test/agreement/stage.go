package agreement

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/volume"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
)

// Stage puts scenarios on a cluster, one after the other.
type Stage struct {
	// Client speaks to the cluster.
	Client *kube.Client
	// Timeout bounds each wait for the cluster.
	Timeout time.Duration
	// Files is the directory for the snapshots of what does not agree; it is made when it is needed.
	Files string

	pods cache.SharedIndexInformer
}

// look is how often a condition is looked at. What is looked at is in memory.
const look = 5 * time.Millisecond

// Open connects to a cluster and prepares it: what all scenarios use is created. Its watch ends with ctx.
func Open(ctx context.Context, config *rest.Config, timeout time.Duration) (*Stage, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	s := &Stage{Client: client, Timeout: timeout}
	if err := s.classes(ctx); err != nil {
		return nil, err
	}
	pods := client.Typed.CoreV1().Pods(metav1.NamespaceAll)
	s.pods = cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return pods.Watch(ctx, o)
		},
	}, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	go s.pods.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), s.pods.HasSynced) {
		return nil, fmt.Errorf("watch pods: %w", ctx.Err())
	}
	return s, nil
}

// classes creates the classes that pods of scenarios name.
func (s *Stage) classes(ctx context.Context) error {
	never := corev1.PreemptNever
	for name, value := range map[string]int32{highClass: 1000, lowClass: 100} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, PreemptionPolicy: &never}
		if _, err := s.Client.Typed.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create PriorityClass %s: %w", name, err)
		}
	}
	first := storagev1.VolumeBindingWaitForFirstConsumer
	for name, by := range map[string]string{staticClass: volume.NotSupportedProvisioner, dynamicClass: provisioner} {
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: by, VolumeBindingMode: &first}
		if _, err := s.Client.Typed.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create StorageClass %s: %w", name, err)
		}
	}
	devices := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: deviceClass}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
		{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", deviceDriver)}},
	}}}
	if _, err := s.Client.Typed.ResourceV1().DeviceClasses().Create(ctx, devices, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create DeviceClass %s: %w", deviceClass, err)
	}
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: overheadClass}, Handler: "x",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: milli(250)}},
		Scheduling: &nodev1.Scheduling{
			NodeSelector: map[string]string{poolLabel: "a"},
			Tolerations:  []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}},
		},
	}
	if _, err := s.Client.Typed.NodeV1().RuntimeClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create RuntimeClass %s: %w", overheadClass, err)
	}
	return nil
}

// until waits for a condition. The error names the condition if that takes too long.
func (s *Stage) until(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, look, s.Timeout, true, done); err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	return nil
}

// seen are the pods of a namespace, as last heard of.
func (s *Stage) seen(namespace string) map[string]*corev1.Pod {
	out := map[string]*corev1.Pod{}
	objs, err := s.pods.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return out // there is such an index
	}
	for _, obj := range objs {
		if p, ok := obj.(*corev1.Pod); ok {
			out[p.Name] = p
		}
	}
	return out
}

// of are the pods of a gang, as last heard of; nil where one is not known yet.
func of(seen map[string]*corev1.Pod, g *Gang) []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(g.Pods))
	for _, p := range g.Pods {
		if seen[p.Name] == nil {
			return nil
		}
		out = append(out, seen[p.Name])
	}
	return out
}

// each does something for all of a list at the same time.
func each[T any](list []T, do func(T) error) error {
	errs := make(chan error, len(list))
	for _, x := range list {
		go func() { errs <- do(x) }()
	}
	var all []error
	for range list {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// directory makes the directory for snapshots.
func (s *Stage) directory() (string, error) {
	if s.Files == "" {
		dir, err := os.MkdirTemp("", "gangctl-agreement-")
		if err != nil {
			return "", err
		}
		s.Files = dir
	}
	return s.Files, os.MkdirAll(s.Files, 0o755)
}
