package kind

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPartsOf(t *testing.T) {
	for whole, want := range map[schema.GroupResource]struct{ resource, version, label string }{
		{Group: "trainer.kubeflow.org", Resource: "trainjobs"}:            {resource: "jobsets", version: "v1alpha2"},
		{Group: "jobset.x-k8s.io", Resource: "jobsets"}:                   {resource: "jobs", version: "v1", label: "jobset.sigs.k8s.io/jobset-name"},
		{Group: "ray.io", Resource: "rayjobs"}:                            {resource: "rayclusters", version: "v1"},
		{Group: "ray.io", Resource: "rayclusters"}:                        {},
		{Group: "kubeflow.org", Resource: "mpijobs"}:                      {resource: "jobs", version: "v1"},
		{Group: "kubeflow.org", Resource: "tfjobs"}:                       {},
		{Group: "kubeflow.org", Resource: "pytorchjobs"}:                  {},
		{Group: "kubeflow.org", Resource: "jaxjobs"}:                      {},
		{Group: "batch.volcano.sh", Resource: "jobs"}:                     {},
		{Group: "batch", Resource: "jobs"}:                                {},
		{Group: "leaderworkerset.x-k8s.io", Resource: "leaderworkersets"}: {},
		{Group: "example.com", Resource: "sweeps"}:                        {},
	} {
		reader, _ := ByResource(whole)
		parts, ok := PartsOf(reader)
		if parts.Resource != want.resource || ok != (want.resource != "") || reader.PartLabel != want.label {
			t.Errorf("%s: %q, %v, by label %q", whole, parts.Resource, ok, reader.PartLabel)
		}
		if ok && parts.Versions[0] != want.version {
			t.Errorf("%s: parts of version %s", whole, parts.Versions[0])
		}
	}
}

func TestByLabel(t *testing.T) {
	yes := true
	for _, c := range []struct{ name, label, kind, owner, want string }{
		{"leader", "serve", "StatefulSet", "serve", "serve"},
		{"worker", "serve", "StatefulSet", "serve-1", "serve"},
		{"of another replica", "serve", "StatefulSet", "serve-2", ""},
		{"of a Job that wears the label", "serve", "Job", "serve", ""},
		{"without the label", "", "StatefulSet", "serve", ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Labels: map[string]string{"leaderworkerset.sigs.k8s.io/group-index": "1"},
			OwnerReferences: []metav1.OwnerReference{{Kind: c.kind, Name: c.owner, UID: "owner", Controller: &yes}},
		}}
		if c.label != "" {
			pod.Labels["leaderworkerset.sigs.k8s.io/name"] = c.label
		}
		reader, name := ByLabel(pod)
		if name != c.want || name != "" && reader.Kind != "LeaderWorkerSet" {
			t.Errorf("%s: %s %q", c.name, reader.Kind, name)
		}
	}
}
