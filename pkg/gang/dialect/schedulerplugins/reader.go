package schedulerplugins

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Up to about v0.24 the same format lived in another API group, under another label. Training Operator v1.6 wrote it.
const (
	oldGroup = "scheduling.sigs.k8s.io"
	oldLabel = "pod-group.scheduling.sigs.k8s.io"
)

// Reader reads PodGroups of scheduling.x-k8s.io, and those of its predecessor scheduling.sigs.k8s.io.
func Reader() gang.Reader {
	return gang.Reader{
		Dialect: gang.SchedulerPlugins,
		Kinds: []gang.Served{
			{GroupKind: GVK().GroupKind(), Resource: GVR().Resource},
			{GroupKind: schema.GroupKind{Group: oldGroup, Kind: GVK().Kind}, Resource: GVR().Resource},
		},
		Schedulers: []string{"scheduler-plugins-scheduler", "gang-scheduler"},
		NameOf: func(pod metav1.Object) (string, bool) {
			if name, ok := NameOf(pod); ok {
				return name, true
			}
			name := pod.GetLabels()[oldLabel]
			return name, name != ""
		},
		Decode: func(u *unstructured.Unstructured) (gang.Declaration, error) {
			return gang.DecodeGroup(gang.SchedulerPlugins, u)
		},
	}
}
