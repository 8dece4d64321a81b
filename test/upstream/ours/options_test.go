package ours

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	restclient "k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func TestRead(t *testing.T) {
	registry := frameworkruntime.Registry{"Mock": func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return nil, nil }}
	config := &restclient.Config{Host: "here"}
	got, err := read([]upstream.Option{
		upstream.WithProfiles(schedulerconfig.KubeSchedulerProfile{SchedulerName: "first"}), upstream.WithPodMaxBackoffSeconds(1),
		upstream.WithFrameworkOutOfTreeRegistry(registry), upstream.WithKubeConfig(config),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Profiles) != 1 || got.Profiles[0].SchedulerName != "first" || got.Plugins["Mock"] == nil || got.KubeConfig != config {
		t.Errorf("read %+v", got)
	}
	if got, err := read(nil); err != nil || got.Profiles != nil || got.Plugins != nil || got.KubeConfig != nil {
		t.Errorf("of no options: %+v, %v", got, err)
	}
}
