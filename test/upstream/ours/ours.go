// Package ours stands in for kube-scheduler where Kubernetes' integration tests create one: its New has the signature of theirs, and
// returns our scheduler.
package ours

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// New returns the engine of our scheduler, started but for the engine's own loop. The factory stays the test's: our scheduler has informers of
// its own, which show the engine gangs in place of PodGroups.
func New(ctx context.Context, client kubernetes.Interface, factory informers.SharedInformerFactory,
	dynamics dynamicinformer.DynamicSharedInformerFactory, recorders profile.RecorderFactory, opts ...upstream.Option,
) (*upstream.Scheduler, error) {
	if err := scheduler.SetDefaultGates(utilfeature.DefaultMutableFeatureGate); err != nil {
		return nil, err
	}
	given, err := read(opts)
	if err != nil {
		return nil, err
	}
	if given.KubeConfig == nil {
		return nil, errors.New("the test gives no address of the API server, from which group objects are read")
	}
	groups, err := dynamic.NewForConfig(given.KubeConfig)
	if err != nil {
		return nil, err
	}
	profiles, err := copyOf(given.Profiles)
	if err != nil {
		return nil, err
	}
	s, err := scheduler.New(ctx, scheduler.Config{
		Client: client, Dynamic: groups, Profiles: profiles, Plugins: given.Plugins, DynamicInformers: dynamics, Recorders: recorders,
		Namespace: scheduler.DefaultNamespace, Priority: gangcache.MemberPriority, Options: opts,
	})
	if err != nil {
		return nil, err
	}
	watchGroups(factory)
	s.Start(ctx, func() { klog.FromContext(ctx).Error(nil, "Gangs cannot be read") })
	s.Informers.StartWithContext(ctx)
	s.Informers.WaitForCacheSyncWithContext(ctx)
	s.Engine.SchedulingQueue = namesOfTests{s.Engine.SchedulingQueue}
	return s.Engine, nil
}

// copyOf copies profiles, to which plugins are added; without any, they are those of kube-scheduler.
func copyOf(given []schedulerconfig.KubeSchedulerProfile) ([]schedulerconfig.KubeSchedulerProfile, error) {
	if len(given) == 0 {
		config, err := latest.Default()
		if err != nil {
			return nil, fmt.Errorf("default configuration: %w", err)
		}
		return config.Profiles, nil
	}
	profiles := make([]schedulerconfig.KubeSchedulerProfile, 0, len(given))
	for _, p := range given {
		profiles = append(profiles, *p.DeepCopy())
	}
	return profiles, nil
}

// watchGroups has the test's factory watch what kube-scheduler's engine would have it watch and tests look up there.
func watchGroups(factory informers.SharedInformerFactory) {
	if utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) {
		factory.Scheduling().V1beta1().PodGroups().Informer()
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.CompositePodGroup) {
		factory.Scheduling().V1alpha3().CompositePodGroups().Informer()
	}
}

// namesOfTests is the engine's queue for tests, which know a PodGroup by the name that it has on the API server.
type namesOfTests struct{ queue.SchedulingQueue }

// GetPod implements queue.SchedulingQueue.
func (q namesOfTests) GetPod(name, namespace string, group *corev1.PodSchedulingGroup) (*framework.QueuedPodInfo, bool) {
	if info, ok := q.SchedulingQueue.GetPod(name, namespace, group); ok || group == nil || group.PodGroupName == nil {
		return info, ok
	}
	virtual := gang.Key{Dialect: gang.Native, Namespace: namespace, Name: *group.PodGroupName}.VirtualName()
	return q.SchedulingQueue.GetPod(name, namespace, &corev1.PodSchedulingGroup{PodGroupName: &virtual})
}
