package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// suspendable is a kind of job that the scheduler suspends, and how it writes that.
type suspendable struct {
	gvk schema.GroupVersionKind
	// suspend sets the field; %v is the value.
	suspend string
	// image is a patch of what the job runs, and further are more that are no business of the scheduler.
	image   string
	further []string
	spec    map[string]any
}

func (s suspendable) resource() schema.GroupVersionResource {
	return s.gvk.GroupVersion().WithResource(strings.ToLower(s.gvk.Kind) + "s")
}

func suspendables() []suspendable {
	template := map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "main", "image": "x"}}}}
	all := []suspendable{{
		gvk:     schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"},
		suspend: `{"suspend":%v}`,
		// Of a suspended Job the API server lets the node selector be changed, and not the image.
		image:   `{"spec":{"template":{"spec":{"nodeSelector":{"disk":"mine"}}}}}`,
		further: []string{`{"spec":{"parallelism":7}}`, `{"spec":{"activeDeadlineSeconds":1}}`, `{"spec":{"suspend":false,"parallelism":7}}`, `{"spec":{"ttlSecondsAfterFinished":null}}`},
		spec:    map[string]any{"suspend": true, "parallelism": int64(1), "ttlSecondsAfterFinished": int64(900), "template": template},
	}}
	all = append(all, suspendable{
		gvk:     schema.GroupVersionKind{Group: jobset.Group, Version: jobset.Version, Kind: jobset.Kind},
		suspend: `{"suspend":%v}`,
		image:   `{"spec":{"replicatedJobs":[{"name":"workers","template":{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"mine"}]}}}}}]}}`,
		further: []string{`{"spec":{"ttlSecondsAfterFinished":7}}`, `{"spec":{"suspend":false,"ttlSecondsAfterFinished":7}}`, `{"spec":{"replicatedJobs":null}}`, `{"spec":{"runPolicy":{"suspend":true}}}`},
		spec:    map[string]any{"replicatedJobs": []any{map[string]any{"name": "workers", "template": map[string]any{"spec": map[string]any{"template": template}}}}},
	})
	for _, kind := range []string{"TF", "PyTorch", "MPI"} {
		roles := strings.ToLower(kind) + "ReplicaSpecs"
		worker := map[string]any{"replicas": int64(1), "restartPolicy": "Never", "template": template}
		all = append(all, suspendable{
			gvk:     schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: kind + "Job"},
			suspend: `{"runPolicy":{"suspend":%v}}`,
			image:   fmt.Sprintf(`{"spec":{%q:{"Worker":{"template":{"spec":{"containers":[{"name":"main","image":"mine"}]}}}}}}`, roles),
			further: []string{
				fmt.Sprintf(`{"spec":{%q:{"Worker":{"replicas":7}}}}`, roles), `{"spec":{"runPolicy":{"ttlSecondsAfterFinished":1}}}`, `{"spec":{"runPolicy":{"activeDeadlineSeconds":null}}}`,
				`{"spec":{"runPolicy":null}}`, `{"spec":{"runPolicy":{"suspend":false,"ttlSecondsAfterFinished":1}}}`,
			},
			spec: map[string]any{roles: map[string]any{"Worker": worker}, "runPolicy": map[string]any{"activeDeadlineSeconds": int64(900)}},
		})
	}
	return all
}

// TestSchedulerLimit checks that the scheduler's account is limited to what it writes of jobs, although its role lets it patch them: whether they are
// suspended, one label and one annotation. Others may do what they may.
func TestSchedulerLimit(t *testing.T) {
	t.Parallel()
	c := newSharedCluster(t, nil, "--operator=false")
	must(t, (&sandboxmanifest.Applier{Client: c.dynamic}).Apply(t.Context(), install.SchedulerPolicyRBAC()))
	config := rest.CopyConfig(c.Config)
	config.Impersonate.UserName = rbac.Account{Namespace: install.DefaultNamespace, Name: install.SchedulerInstance}.String()
	scheduler, err := dynamic.NewForConfig(config)
	must(t, err)
	c.serveKind(t, apiKind{schema.GroupVersionResource{Group: jobset.Group, Version: jobset.Version, Resource: jobset.Resource}, jobset.Kind, true})
	for _, kind := range suspendables() {
		t.Run(kind.gvk.Kind, func(t *testing.T) { kind.isLimited(t, c.dynamic, scheduler) })
	}
}

func (s suspendable) isLimited(t *testing.T, admin, scheduler dynamic.Interface) {
	ctx, name := t.Context(), strings.ToLower(s.gvk.Kind)
	patch := func(client dynamic.Interface, text string, dryRun ...string) (*unstructured.Unstructured, error) {
		return client.Resource(s.resource()).Namespace(space).Patch(ctx, name, types.MergePatchType, []byte(text), metav1.PatchOptions{DryRun: dryRun})
	}
	job := &unstructured.Unstructured{Object: map[string]any{"spec": s.spec}}
	job.SetGroupVersionKind(s.gvk)
	job.SetName(name)
	job, err := admin.Resource(s.resource()).Namespace(space).Create(ctx, job, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "the policy is in force", func(context.Context) bool {
		_, err := patch(scheduler, `{"metadata":{"labels":{"probe":"1"}}}`, metav1.DryRunAll)
		return err != nil && strings.Contains(err.Error(), install.SchedulerLimit)
	})
	field := func(value bool) string { return fmt.Sprintf(s.suspend, value) }
	suspends := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:%q},"annotations":{%q:"why"}},"spec":%s}`, job.GetUID(), suspend.Label, suspend.Value, suspend.BecauseAnnotation, field(true))
	resumes := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:null},"annotations":{%q:null}},"spec":%s}`, job.GetUID(), suspend.Label, suspend.BecauseAnnotation, field(false))
	accepted := func(what, text string) {
		t.Helper()
		if _, err := patch(scheduler, text); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if _, err := patch(scheduler, text, metav1.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the gang scheduler may change") {
				t.Errorf("%s: %v", text, err)
			}
			if _, err := patch(admin, text, metav1.DryRunAll); err != nil {
				t.Errorf("%s by somebody else: %v", text, err)
			}
		}
	}
	metadata := []string{`{"metadata":{"labels":{"team":"mine"}}}`, `{"metadata":{"annotations":{"a":"b"}}}`, `{"metadata":{"finalizers":["example.com/mine"]}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"1"}]}}`}
	refused(append(append([]string{s.image}, metadata...), s.further...)...)
	accepted("suspend", suspends)
	accepted("resume", resumes)
	// The same with labels and annotations of the user's, which stay.
	_, err = patch(admin, `{"metadata":{"labels":{"team":"theirs"},"annotations":{"a":"theirs"},"finalizers":["example.com/theirs"]}}`)
	must(t, err)
	accepted("suspend again", suspends)
	refused(append(metadata, `{"metadata":{"labels":null}}`, `{"metadata":{"labels":{"team":null}}}`, `{"metadata":{"annotations":{"a":null}}}`, `{"metadata":{"finalizers":null}}`)...)
	accepted("resume again", resumes)
	_, err = patch(admin, `{"metadata":{"finalizers":null}}`)
	must(t, err)
}
