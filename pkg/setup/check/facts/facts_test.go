package facts

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/setup/check"
	roles "github.com/gangctl/gangctl/pkg/setup/rbac"
)

// cluster serves a small cluster, in which the caller may do what allowed permits.
func cluster(t *testing.T, allowed func(*authorizationv1.ResourceAttributes) bool) *kubetest.Cluster {
	t.Helper()
	c := kubetest.Serve(t, clustertest.New().Nodes(2, 8).Done())
	c.HandleFunc("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		review, ok := obj.(*authorizationv1.SelfSubjectAccessReview)
		if err != nil || !ok {
			t.Errorf("%T, %v", obj, err)
			return
		}
		review.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
		review.Status.Allowed = allowed(review.Spec.ResourceAttributes)
		kubetest.Write(w, 201, review)
	})
	c.Answer("POST /apis/authentication.k8s.io/v1/selfsubjectreviews", 201, &authenticationv1.SelfSubjectReview{
		TypeMeta:   metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(clustertest.Now.Add(7 * time.Second))},
		Status:     authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "ann"}},
	})
	list := func(path, apiVersion, kind string, items ...any) {
		c.Answer("GET "+path, 200, map[string]any{"apiVersion": apiVersion, "kind": kind + "List", "metadata": map[string]any{}, "items": items})
	}
	const rbac = "rbac.authorization.k8s.io/v1"
	list("/apis/"+rbac+"/clusterroles", rbac, "ClusterRole", &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:kube-scheduler"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/binding"}, Verbs: []string{"create"}}}})
	list("/apis/"+rbac+"/clusterrolebindings", rbac, "ClusterRoleBinding")
	list("/apis/"+rbac+"/roles", rbac, "Role", &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication-reader"}})
	list("/apis/"+rbac+"/rolebindings", rbac, "RoleBinding")
	list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "meta.k8s.io/v1", "PartialObjectMetadata", map[string]any{"metadata": map[string]any{"name": "tfjobs.kubeflow.org"}})
	return c
}

func lookAt(t *testing.T, c *kubetest.Cluster, before bool) (*check.Facts, error) {
	t.Helper()
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := install.Scheduler{Version: "v1", Namespace: install.DefaultNamespace, Image: "x", Replicas: 1, TakeBack: true}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	return Collect(t.Context(), client, Options{Namespace: "team", Shipped: shipped, Before: before, Now: func() time.Time { return clustertest.Now }})
}

func everything(*authorizationv1.ResourceAttributes) bool { return true }

func TestLook(t *testing.T) {
	c := cluster(t, everything)
	f, err := lookAt(t, c, false)
	if err != nil {
		t.Fatal(err)
	}
	if f.User != "ann" || f.ServerTime.Sub(clustertest.Now) != 7*time.Second || len(f.Definitions) != 1 || f.Definitions[0].Name != "tfjobs.kubeflow.org" {
		t.Errorf("got %q %v %v", f.User, f.ServerTime, f.Definitions)
	}
	s := f.View.Snap
	if len(s.Nodes) != 2 || len(s.Deployments) != 2 || len(s.Leases) != 1 || len(f.Policy.ClusterRoles) != 1 || len(f.Policy.Roles) != 1 {
		t.Errorf("%d nodes, %d deployments, %d leases, book %+v", len(s.Nodes), len(s.Deployments), len(s.Leases), f.Policy)
	}
	if len(f.Denied) > 0 || len(f.Reviews) != len(check.SubmitAccess("team"))+len(check.KindAccess("team", f.View.Snap)) {
		t.Errorf("denied %v, %d reviews", f.Denied, len(f.Reviews))
	}
	seen := map[string]int{}
	for _, r := range c.Requests() {
		if path, _, list := strings.Cut(r, "?"); list && strings.HasPrefix(path, "GET ") {
			if seen[path]++; seen[path] > 1 {
				t.Errorf("listed twice: %s", path)
			}
		}
	}
	if len(seen) < 8 {
		t.Errorf("only %d lists: %v", len(seen), seen)
	}
}

func TestNodeLeasesStandApart(t *testing.T) {
	at := metav1.NewMicroTime(clustertest.Now)
	e := clustertest.New()
	e.Put(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: "n1"}, Spec: coordinationv1.LeaseSpec{RenewTime: &at}})
	c := cluster(t, everything)
	c.Set(e.Done())
	f, err := lookAt(t, c, false)
	if err != nil || len(f.NodeLeases) != 1 || len(f.View.Snap.Leases) != 1 {
		t.Errorf("%v: %d and %d", err, len(f.NodeLeases), len(f.View.Snap.Leases))
	}
}

// What DRA drivers offer is read; that it may not be, or that the server does not serve it, stops nothing.
func TestSlices(t *testing.T) {
	const path = "/apis/resource.k8s.io/v1/resourceslices"
	node := "n1"
	list := &resourcev1.ResourceSliceList{TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSliceList"}, Items: []resourcev1.ResourceSlice{{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node, Devices: []resourcev1.Device{{Name: "gpu-0"}}}}, {
		ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node}}}}
	tests := map[string]struct {
		status           *metav1.Status
		unlisted, denied bool
	}{
		"served":     {},
		"refused":    {kubetest.Status(403, metav1.StatusReasonForbidden, "refused", nil), true, true},
		"fails":      {kubetest.Status(500, metav1.StatusReasonInternalError, "slow", nil), true, false},
		"not served": {kubetest.Status(404, metav1.StatusReasonNotFound, "not found", nil), false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, everything)
			if tt.status == nil {
				c.Answer("GET "+path, 200, list)
			} else {
				c.Answer("GET "+path, int(tt.status.Code), tt.status)
			}
			f, err := lookAt(t, c, false)
			if err != nil {
				t.Fatal(err)
			}
			_, unlisted := f.Unlisted[check.ResourceSlices]
			if unlisted != tt.unlisted || f.Denied[check.ResourceSlices] != tt.denied {
				t.Errorf("unlisted %v, denied %v", f.Unlisted, f.Denied)
			}
			read := f.View.Snap.ResourceSlices
			if tt.status != nil && len(read) != 0 || tt.status == nil && (len(read) != 1 || read[0].Spec.Driver != "gpu.nvidia.com" || *read[0].Spec.NodeName != node) {
				t.Errorf("got %+v", read)
			}
		})
	}
}

// A list that is refused and one that fails are both unseen, for different reasons.
func TestUnseen(t *testing.T) {
	c := cluster(t, everything)
	c.Deny("ann", "/apis/apps/v1/deployments", "/api/v1/nodes", "/apis/coordination.k8s.io/v1/leases")
	c.Fail("/api/v1/nodes", kubetest.Status(500, metav1.StatusReasonInternalError, "etcd is slow", nil))
	f, err := lookAt(t, c, false)
	if err != nil {
		t.Fatal(err)
	}
	for resource, denied := range map[string]bool{"deployments.apps": true, "leases.coordination.k8s.io": true, "nodes": false} {
		if why, unlisted := f.Unlisted[resource]; !unlisted || why == "" || f.Denied[resource] != denied {
			t.Errorf("%s: unseen %v (%s), denied %v", resource, unlisted, why, f.Denied[resource])
		}
	}
}

func TestUnready(t *testing.T) {
	c := cluster(t, everything)
	c.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n")
	})
	if f, err := lookAt(t, c, false); err != nil || f.Unready != "etcd failed: reason withheld" {
		t.Errorf("%v, %q", err, f.Unready)
	}
}

// Before an installation, the rights to all that it writes are reviewed, and nothing is listed that does not matter yet.
func TestBefore(t *testing.T) {
	c := cluster(t, everything)
	f, err := lookAt(t, c, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range f.Reviews {
		if !r.Allowed || r.Failed != "" {
			t.Errorf("%+v", r)
		}
	}
	has := func(verb, resource string) bool {
		return slices.ContainsFunc(f.Reviews, func(r check.Review) bool { return r.Verb == verb && r.Resource == resource })
	}
	for _, want := range [][2]string{{"patch", "networkpolicies"}, {"create", "priorityclasses"}, {"escalate", "clusterroles"}, {"bind", "roles"}, {"list", "poddisruptionbudgets"}, {"watch", "deployments"}} {
		if !has(want[0], want[1]) {
			t.Errorf("no review of whether one may %v", want)
		}
	}
	if slices.ContainsFunc(c.Requests(), func(r string) bool { return strings.HasPrefix(r, "GET /api/v1/pods") }) {
		t.Error("pods are listed")
	}
}

// Who holds every rule of a role may grant it, without the rights to escalate and to bind; who lacks one may not.
func TestHolds(t *testing.T) {
	for _, lacking := range []string{"", "pods/binding"} {
		f, err := lookAt(t, cluster(t, func(a *authorizationv1.ResourceAttributes) bool {
			if a.Verb == "escalate" || a.Verb == "bind" {
				return false
			}
			return a.Resource+"/"+a.Subresource != lacking
		}), true)
		if err != nil {
			t.Fatal(err)
		}
		var refused []string
		for _, r := range f.Reviews {
			if !r.Allowed {
				refused = append(refused, roles.String(r.Rule()))
			}
		}
		want := []string(nil)
		if lacking != "" {
			want = []string{"bind clusterroles.rbac.authorization.k8s.io named system:kube-scheduler"}
		}
		refused = slices.DeleteFunc(refused, func(s string) bool {
			// Roles that this small cluster does not have, and paths, which are not requested.
			return strings.Contains(s, "volume-scheduler") || strings.Contains(s, "gangs-viewer")
		})
		if !slices.Equal(refused, want) {
			t.Errorf("without %q: %q is refused", lacking, refused)
		}
	}
}

func TestUnauthorized(t *testing.T) {
	c := cluster(t, everything)
	c.Fail("/api/v1/nodes", kubetest.Status(401, metav1.StatusReasonUnauthorized, "Unauthorized", nil))
	if _, err := lookAt(t, c, false); err == nil || !strings.Contains(failure.From(err).Message, "does not accept your credentials") {
		t.Errorf("got %v", err)
	}
}
