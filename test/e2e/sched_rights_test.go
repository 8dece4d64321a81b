package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
	"github.com/gangctl/gangctl/test/faultproxy"
)

// TestRightsOfTheScheduler checks that the scheduler uses exactly the rights that are
// shipped: nothing that it requests is refused, and no rule is there for nothing.
// What Kubernetes grants every scheduler is not looked at.
func TestRightsOfTheScheduler(t *testing.T) {
	t.Parallel()
	rules := shipped(t)
	c := newSharedCluster(t, twoNodes(), "--native-gangs", "--operator=false")
	must(t, (&sandboxmanifest.Applier{Client: c.dynamic}).Apply(t.Context(), install.SchedulerPolicyRBAC()))
	for _, kind := range thirdParty() {
		c.serveKind(t, kind)
	}
	for _, w := range wires() {
		if w.defines() {
			c.define(t, w.resource)
		}
	}
	for _, n := range networks() {
		c.defineKind(t, n.resource, n.kind, "Cluster")
	}
	proxy, err := faultproxy.Start(c.Config)
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	seen := &requests{}
	proxy.Inject(-1, func(*http.Request) bool { return true }, seen.take)
	startScheduler(t, c.DataDir, proxy, map[string]string{"GangBelowMinimum": "{belowMin: evict, grace: 1s, startGrace: 1s}"}, allNames, "--leader-elect=true")

	for _, w := range wires() { // every dialect, with one gang that waits
		g := c.with(t, w)
		name := "r-" + w.name
		g.declare(name, 1)
		g.members(name, 1, 1)
		g.placed(t, name+"-0")
		g.declare(name+"-waits", 9)
		g.members(name+"-waits", 9, 9)
		g.waitMessage(t, name+"-waits-8", "of the 9 members that its gang needs fit")
		if g.resource.Group != "" && g.resource.Group != "policy" && w.name != "kai" {
			eventually(t, name+" has a status", func(context.Context) bool {
				status, _, _ := unstructured.NestedMap(g.object(name).Object, "status")
				return len(status) > 0
			})
		}
		must(t, c.client.CoreV1().Pods(space).DeleteCollection(t.Context(), now(), metav1.ListOptions{}))
		g.empty(t)
	}
	c.losesMembers(t)
	c.with(t, labelsWire(t)).members("waits", 9, 9) // for so long that it is explained
	var unused []string
	for deadline := time.Now().Add(2 * stepTimeout); time.Now().Before(deadline); time.Sleep(time.Second) {
		made := seen.list()
		unused = nil
		for _, rule := range rules {
			if !slices.ContainsFunc(made, rule.covers) {
				unused = append(unused, rule.String())
			}
		}
		if len(unused) == 0 {
			break
		}
	}
	for _, r := range seen.list() {
		if r.code == http.StatusForbidden || r.code == http.StatusUnauthorized {
			t.Errorf("refused with %d: %s", r.code, r)
		}
	}
	if len(unused) > 0 {
		t.Errorf("nothing needed these:\n%s", strings.Join(unused, "\n"))
	}
}

// losesMembers: gangs of every kind of job, and of none, fall below their minimum
// and are taken back.
func (c *cluster) losesMembers(t *testing.T) {
	g := c.with(t, labelsWire(t))
	for _, kind := range []schema.GroupVersionKind{
		{Group: "kubeflow.org", Version: "v1", Kind: "TFJob"}, {Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}, {Group: "kubeflow.org", Version: "v1", Kind: "MPIJob"},
		{Group: "kubeflow.org", Version: "v1", Kind: "XGBoostJob"}, {Group: "kubeflow.org", Version: "v1", Kind: "PaddleJob"}, {Group: "kubeflow.org", Version: "v1", Kind: "JAXJob"},
		{Group: jobset.Group, Version: jobset.Version, Kind: jobset.Kind},
		{Group: trainjob.Group, Version: trainjob.Version, Kind: trainjob.Kind},
		{Group: ray.Group, Version: ray.Version, Kind: ray.ClusterKind}, {Group: ray.Group, Version: ray.Version, Kind: ray.JobKind},
	} {
		name := strings.ToLower(kind.Kind)
		resource := kind.GroupVersion().WithResource(name + "s")
		roles := strings.ToLower(strings.TrimSuffix(kind.Kind, "Job")) + "ReplicaSpecs"
		job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"runPolicy": map[string]any{}, roles: map[string]any{"Worker": map[string]any{
			"replicas": int64(2), "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "tensorflow", "image": "x"}}}},
		}}}}}
		if kind.Kind == ray.JobKind { // the operator suspends no other
			must(t, unstructured.SetNestedField(job.Object, true, "spec", "shutdownAfterJobFinishes"))
		}
		job.SetGroupVersionKind(kind)
		job.SetName(name)
		job, err := c.dynamic.Resource(resource).Namespace(space).Create(t.Context(), job, metav1.CreateOptions{})
		must(t, err)
		g.members(name, 2, 2, func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: name, UID: job.GetUID(), Controller: ptr.To(true)}}
		})
		g.placed(t, g.names(name, 2)...)
		c.kill(t, name+"-0")
		eventually(t, name+" is suspended", func(ctx context.Context) bool {
			job, err := c.dynamic.Resource(resource).Namespace(space).Get(ctx, name, metav1.GetOptions{})
			suspended, _, _ := unstructured.NestedBool(job.Object, suspension.FieldOf(kind.Group)...)
			return err == nil && suspended
		})
		c.kill(t, name+"-1")
	}
	template := plain("", g.scheduler, "1")
	g.setGroup(template, "batch", 2)
	_, err := c.client.BatchV1().Jobs(space).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "batch"},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To(int32(2)), Completions: ptr.To(int32(2)), BackoffLimit: ptr.To(int32(100)),
			Template: corev1.PodTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: template.Spec},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	owned := func(ctx context.Context) (bound []string) {
		pods, err := c.client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=batch"})
		must(t, err)
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" {
				bound = append(bound, pod.Name)
			}
		}
		return bound
	}
	eventually(t, "the batch job has places", func(ctx context.Context) bool { return len(owned(ctx)) == 2 })
	// One that has ended stays for as long as the job does.
	_, err = c.client.CoreV1().Pods(space).Patch(t.Context(), owned(t.Context())[0], types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	eventually(t, "the batch job is suspended, and resumed", func(ctx context.Context) bool {
		events, err := c.client.EventsV1().Events(space).List(ctx, metav1.ListOptions{})
		must(t, err)
		return slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool { return e.Regarding.Name == "batch" && e.Reason == "GangResumed" })
	})
	must(t, c.client.BatchV1().Jobs(space).Delete(t.Context(), "batch", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	g.members("none", 2, 2)
	g.placed(t, "none-0", "none-1")
	c.kill(t, "none-0")
	eventually(t, "the rest is evicted", func(ctx context.Context) bool {
		_, err := c.client.CoreV1().Pods(space).Get(ctx, "none-1", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// apiKind is a kind that others define, as far as the scheduler looks at it.
type apiKind struct {
	schema.GroupVersionResource
	kind       string
	namespaced bool
}

func thirdParty() (kinds []apiKind) {
	add := func(group, version string, namespaced bool, names ...string) {
		for _, kind := range names {
			resource := strings.ToLower(kind) + "s"
			if strings.HasSuffix(kind, "s") {
				resource = strings.ToLower(kind) + "es"
			}
			kinds = append(kinds, apiKind{schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, kind, namespaced})
		}
	}
	add("kubeflow.org", "v1", true, "TFJob", "PyTorchJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob")
	add(volcanojob.Group, "v1alpha1", true, "Job")
	for _, kind := range schedulerplugins.QuotaKinds() {
		add(kind.Group, "v1alpha1", true, kind.Kind)
	}
	add(jobset.Group, jobset.Version, true, jobset.Kind)
	add(trainjob.Group, trainjob.Version, true, trainjob.Kind, trainjob.RuntimeKind)
	add(trainjob.Group, trainjob.Version, false, trainjob.ClusterRuntimeKind)
	add(ray.Group, ray.Version, true, ray.ClusterKind, ray.JobKind)
	add(leaderworkerset.Group, leaderworkerset.Version, true, leaderworkerset.Kind)
	add("karpenter.sh", "v1", false, "NodeClaim", "NodePool")
	add("scheduling.volcano.sh", "v1beta1", false, "Queue")
	add("scheduling.run.ai", "v2", false, "Queue")
	add("scheduling.incubator.k8s.io", "v1alpha1", false, "Queue")
	add("scheduling.sigs.dev", "v1alpha2", false, "Queue")
	add("kueue.x-k8s.io", "v1beta1", true, "Workload", "LocalQueue")
	add("kueue.x-k8s.io", "v1beta1", false, "ClusterQueue", "Cohort", "ResourceFlavor", "AdmissionCheck", "MultiKueueCluster", "WorkloadPriorityClass")
	add("autoscaling.x-k8s.io", "v1", true, "ProvisioningRequest")
	return kinds
}

// serveKind defines a kind with a schema that takes anything.
func (c *cluster) serveKind(t *testing.T, k apiKind) {
	t.Helper()
	scope := "Cluster"
	if k.namespaced {
		scope = "Namespaced"
	}
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	_, err := c.dynamic.Resource(definitions).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": k.GroupResource().String(), "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for a test"}},
		"spec": map[string]any{
			"group": k.Group, "scope": scope,
			"names":    map[string]any{"kind": k.kind, "listKind": k.kind + "List", "plural": k.Resource, "singular": strings.ToLower(k.kind)},
			"versions": []any{map[string]any{"name": k.Version, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": anything}}},
		},
	}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// request is one that was made, as rights see it.
type request struct {
	verb, group, resource, namespace, name, path string
	code                                         int
}

func (r request) String() string {
	return fmt.Sprintf("%s %s.%s %s/%s (%s)", r.verb, r.resource, r.group, r.namespace, r.name, r.path)
}

// requests are all that a client made.
type requests struct {
	mu   sync.Mutex
	made []request
}

// take is a fault that breaks nothing.
func (s *requests) take(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	resolver := &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(r)
	answer := &coded{ResponseWriter: w, code: http.StatusOK}
	begun := func() {
		if err != nil {
			return
		}
		resource := info.Resource
		if info.Subresource != "" {
			resource += "/" + info.Subresource
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		made := request{info.Verb, info.APIGroup, resource, info.Namespace, info.Name, info.Path, answer.code}
		s.made = append(s.made, made)
		if r.URL.Query().Get("sendInitialEvents") == "true" { // API servers that cannot do that get a list request
			made.verb = "list"
			s.made = append(s.made, made)
		}
	}
	answer.begun = begun // a watch goes on for long
	forward.ServeHTTP(answer, r)
}

func (s *requests) list() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.made)
}

// coded records when an answer begins.
type coded struct {
	http.ResponseWriter
	code  int
	begun func()
}

func (c *coded) WriteHeader(code int) {
	c.code = code
	if c.begun != nil {
		c.begun()
		c.begun = nil
	}
	c.ResponseWriter.WriteHeader(code)
}

// Unwrap lets what is sent be flushed.
func (c *coded) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// right is one thing that a rule allows.
type right struct{ role, verb, group, resource, namespace, name string }

func (r right) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s.%s %s %s", r.role, r.verb, r.resource, r.group, r.namespace, r.name))
}

func (r right) covers(made request) bool {
	return r.verb == made.verb && r.group == made.group && r.resource == made.resource &&
		(r.namespace == "" || r.namespace == made.namespace) && (r.name == "" || r.name == made.name) && made.code != http.StatusForbidden
}

// shipped are the rights in the manifests, one by one. No rule is larger than
// what it names.
func shipped(t *testing.T) (rights []right) {
	t.Helper()
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(slices.Concat(install.SchedulerRBAC(), []byte("\n---\n"), install.SchedulerPolicyRBAC())), 4096)
	for {
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := documents.Decode(&role); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if role.Kind != "ClusterRole" && role.Kind != "Role" {
			continue
		}
		for _, rule := range role.Rules {
			if slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs), "*") || len(rule.NonResourceURLs) > 0 {
				t.Errorf("%s: a rule is for everything: %v", role.Name, rule)
			}
			names := rule.ResourceNames
			if len(names) == 0 {
				names = []string{""}
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						for _, name := range names {
							rights = append(rights, right{role.Name, verb, group, resource, role.Namespace, name})
						}
					}
				}
			}
		}
	}
	if len(rights) < 20 {
		t.Fatalf("only %d rights in the manifests", len(rights))
	}
	return rights
}
