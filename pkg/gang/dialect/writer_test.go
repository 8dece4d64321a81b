package dialect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// What a writer writes, its reader reads as the same gang, in every version of its object; and no other dialect that is evaluated before it
// takes the pods for its own.
func TestWrittenIsReadBack(t *testing.T) {
	desired := gang.Declaration{
		MinMember: 5, Queue: "research", PriorityClass: "high",
		MinResources: corev1.ResourceList{"cpu": resource.MustParse("2500m"), "nvidia.com/gpu": resource.MustParse("8")},
	}
	for _, w := range Writers() {
		versions := w.Versions
		if w.Object == nil {
			versions = []schema.GroupVersion{{}}
		}
		for _, version := range versions {
			t.Run(string(w.Dialect)+" "+version.String(), func(t *testing.T) {
				d := desired
				d.Key = gang.Key{Dialect: w.Dialect, Namespace: "team", Name: "llama"}
				template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"mine": "x"}, Annotations: map[string]string{"mine": "y"}}}
				w.SetGroup(template, d, "worker")
				if template.Labels["mine"] != "x" || template.Annotations["mine"] != "y" {
					t.Errorf("group references replaced what was there: %v %v", template.Labels, template.Annotations)
				}
				pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
				pod.Namespace = "team"
				r, known := ReaderOf(w.Dialect)
				if !known {
					for _, other := range Readers() {
						if name, ok := other.GroupOf(pod); ok {
							t.Errorf("%s reads a pod without a gang as one of %s", other.Dialect, name)
						}
					}
					return
				}
				if name, ok := r.GroupOf(pod); !ok || name != "llama" {
					t.Fatalf("the pod is in %q, %v", name, ok)
				}
				if r.RoleOf != nil && r.RoleOf(pod) != "worker" {
					t.Errorf("role %q", r.RoleOf(pod))
				}
				if w.Object == nil {
					got, err := r.FromPods(d.Key, []*corev1.Pod{pod})
					if err != nil || got.MinMember != d.MinMember || got.Key != d.Key {
						t.Errorf("got %+v, %v", got, err)
					}
					return
				}
				object := w.Object(d, version)
				if object.GroupVersionKind() != version.WithKind("PodGroup") {
					t.Errorf("it is a %s", object.GroupVersionKind())
				}
				served := false
				for _, kind := range r.Kinds {
					served = served || kind.GroupKind == object.GroupVersionKind().GroupKind()
				}
				if !served {
					t.Errorf("the reader does not read %s", object.GroupVersionKind())
				}
				got, err := r.Decode(object)
				if err != nil || got.Key != d.Key || got.MinMember != d.MinMember || got.Basic {
					t.Errorf("got %+v, %v", got, err)
				}
				if w.Queues && got.Queue != d.Queue {
					t.Errorf("queue %q", got.Queue)
				}
				if got.MinResources != nil {
					if diff := cmp.Diff(d.MinResources, got.MinResources); diff != "" {
						t.Errorf("minResources: %s", diff)
					}
				}
			})
		}
	}
}

// Whoever a writer names as the scheduler does not read another dialect only.
func TestSchedulersReadWhatIsWritten(t *testing.T) {
	for _, w := range Writers() {
		if r, ok := ReaderOf(w.Dialect); ok && Affinity(r, w.Scheduler) < 0 {
			t.Errorf("%s: %s does not read it", w.Dialect, w.Scheduler)
		}
	}
}
