package ours

import (
	"fmt"
	"reflect"
	"unsafe"

	restclient "k8s.io/client-go/rest"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// given is what a test sets by options of kube-scheduler, and our scheduler has to know before it creates the engine.
type given struct {
	Profiles   []schedulerconfig.KubeSchedulerProfile
	Plugins    frameworkruntime.Registry
	KubeConfig *restclient.Config
}

// read applies options to a value of the type that they change, which kube-scheduler does not export, and returns three of its fields.
func read(opts []upstream.Option) (g given, err error) {
	set := reflect.New(reflect.TypeFor[upstream.Option]().In(0).Elem())
	for _, opt := range opts {
		reflect.ValueOf(opt).Call([]reflect.Value{set})
	}
	for name, to := range map[string]any{"profiles": &g.Profiles, "frameworkOutOfTreeRegistry": &g.Plugins, "kubeConfig": &g.KubeConfig} {
		field, value := set.Elem().FieldByName(name), reflect.ValueOf(to).Elem()
		if !field.IsValid() || field.Type() != value.Type() {
			return given{}, fmt.Errorf("options of kube-scheduler have no field %s of type %s any more", name, value.Type())
		}
		value.Set(reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem())
	}
	return g, nil
}
