package view

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
)

// templates remembers pod templates by the object that they were decoded from. A snapshot of a large cluster holds templates
// that are equal once, and so do the jobs that were read from it.
type templates map[uintptr]template

// template is one of them. The object is kept, so that its address stays its own.
type template struct {
	object map[string]any
	spec   *corev1.PodTemplateSpec
}

// share gives the roles of a job templates that were decoded before.
func (t templates) share(job *gang.Job, u *unstructured.Unstructured) {
	spec, _ := u.Object["spec"].(map[string]any)
	for _, field := range spec {
		roles, _ := field.(map[string]any)
		for i := range job.Roles {
			role, _ := roles[job.Roles[i].Name].(map[string]any)
			object, ok := role["template"].(map[string]any)
			if !ok {
				continue
			}
			at := reflect.ValueOf(object).Pointer()
			if known, ok := t[at]; ok {
				job.Roles[i].Template = *known.spec
				continue
			}
			t[at] = template{object, &job.Roles[i].Template}
		}
	}
}
