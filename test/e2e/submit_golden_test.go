package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/document"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// goldens lets the API server look at what every flag and every template makes, to the last field, and at a pod of each role,
// which no component looks at before the operator makes them.
func (c *cluster) goldens(t *testing.T) {
	const namespace = "research" // which is in the files
	c.home(t, namespace)
	_, err := c.client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "trainer"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = c.client.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}, metav1.CreateOptions{})
	must(t, err)
	var paths []string
	for _, dir := range []string{"flag", "template"} {
		found, err := filepath.Glob(filepath.Join("../../pkg/cmd/submit/testdata", dir, "*.yaml"))
		must(t, err)
		paths = append(paths, found...)
	}
	if len(paths) < 60 {
		t.Fatalf("only %d files", len(paths))
	}
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	looked := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must(t, err)
		docs, err := document.Split(text)
		must(t, err)
		for _, d := range docs {
			u := &unstructured.Unstructured{}
			must(t, u.UnmarshalJSON(d.JSON))
			resource, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
			_, err := c.dynamic.Resource(resource).Namespace(namespace).Create(t.Context(), u, options)
			if apierrors.IsNotFound(err) && strings.HasSuffix(resource.Group, "volcano.sh") {
				continue // it is not served here
			}
			if err != nil {
				t.Errorf("%s: %s %s: %v", path, u.GetKind(), u.GetName(), err)
			}
			reader, ok := kind.ByKind(u.GroupVersionKind().GroupKind())
			if !ok {
				continue
			}
			job, err := reader.Read(u)
			must(t, err)
			for _, role := range job.Roles {
				pod := &corev1.Pod{ObjectMeta: role.Template.ObjectMeta, Spec: role.Template.Spec}
				pod.Name = "looked-at"
				if _, err := c.client.CoreV1().Pods(namespace).Create(t.Context(), pod, options); err != nil {
					t.Errorf("%s: a pod of %s: %v", path, role.Name, err)
				}
				looked++
			}
		}
	}
	if looked < len(paths) {
		t.Errorf("only %d pods of %d jobs were looked at", looked, len(paths))
	}
}
