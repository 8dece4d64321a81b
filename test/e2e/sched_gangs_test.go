package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/api"
)

// TestGangsAreServed: whoever has the right sees all gangs and why they wait,
// and no other account does.
func TestGangsAreServed(t *testing.T) {
	t.Parallel()
	c := newSharedCluster(t, twoNodes(), "--native-gangs")
	s := startScheduler(t, c.DataDir, nil, map[string]string{"GangAging": "{after: 3s}", "GangReplacement": "{holdTTL: 60s}"})
	g := c.with(t, labelsWire(t))
	g.members("runs", 2, 2)
	g.placed(t, g.names("runs", 2)...)
	g.members("large", 8, 8)
	g.members("few", 3, 2)
	g.waitMessage(t, "large-7", "of the 8 members that its gang needs fit")
	g.waitMessage(t, "few-1", "2/3 pods exist")

	viewer, nobody := c.token(t, "viewer"), c.token(t, "nobody")
	c.allow(t, "viewer")
	get := func(token, path string) (int, string) {
		t.Helper()
		return s.get(t, token, path)
	}
	eventually(t, "the viewer's right is known", func(context.Context) bool { code, _ := get(viewer, api.Path); return code == http.StatusOK })
	for what, refused := range map[string]struct {
		token, path string
		codes       []int
	}{
		"a token without the right":          {nobody, api.Path, []int{403}},
		"no token":                           {"", api.Path, []int{401, 403}},
		"a token that is none":               {"x.y.z", api.Path, []int{401}},
		"the right to the gangs, of metrics": {viewer, "/metrics", []int{403}},
	} {
		code, body := get(refused.token, refused.path)
		if !strings.Contains(fmt.Sprint(refused.codes), fmt.Sprint(code)) || strings.Contains(body, "large") {
			t.Errorf("%s: %d %s", what, code, body)
		}
	}
	if code, body := get("", "/healthz"); code != http.StatusOK || body != "ok" {
		t.Errorf("/healthz: %d %s", code, body)
	}

	list := func(path string) (byName map[string]api.Gang) {
		t.Helper()
		code, body := get(viewer, path)
		var l api.List
		if err := json.Unmarshal([]byte(body), &l); err != nil || code != http.StatusOK || l.APIVersion != "gangctl.dev/v1" || !l.Leading {
			t.Fatalf("%d, %v: %s", code, err, body)
		}
		byName = map[string]api.Gang{}
		for _, g := range l.Items {
			byName[g.Name] = g
		}
		return byName
	}
	gangs := list(api.Path)
	runs, large, few := gangs["runs"], gangs["large"], gangs["few"]
	if len(gangs) != 3 || runs.State != gang.Running || runs.Pods.Bound != 2 || runs.Required != 2 || runs.Code != "" || runs.Since == nil || runs.Dialect != gang.Labels {
		t.Errorf("runs: %+v", runs)
	}
	if large.State != gang.Pending || large.Code != "INSUFFICIENT_cpu" || large.Required != 8 || large.Fit == nil || *large.Fit != 6 || len(large.Shortages) != 1 ||
		large.Shortages[0].Requested != "8" || large.Shortages[0].Available != "6" || large.Shortages[0].Total != "8" || large.NextAttempt == nil || large.Since == nil {
		t.Errorf("large: %+v", large)
	}
	if few.State != api.Incomplete || few.Code != "BELOW_QUORUM" || !strings.Contains(few.Message, "2/3 pods exist") || few.Pods.Total != 2 {
		t.Errorf("few: %+v", few)
	}
	if other := list(api.Path + "?namespace=elsewhere"); len(other) != 0 {
		t.Errorf("of another namespace: %v", other)
	}
	if same := list(api.Path + "?namespace=" + space); len(same) != 3 {
		t.Errorf("of this namespace: %v", same)
	}
	if code, body := get(viewer, api.Path+"?namspace=x"); code != http.StatusBadRequest {
		t.Errorf("a misspelt filter: %d %s", code, body)
	}

	// What is kept, and for whom.
	came := 0
	eventually(t, "the large gang has a reservation", func(context.Context) bool {
		c.create(t, plain(fmt.Sprintf("s-%d", came), g.scheduler, "9")) // a pod has to come for reservations to be reviewed
		came++
		return list(api.Path)["large"].Reservation != nil
	})
	g.waitMessage(t, "large-0", "of the 8 members that its gang needs fit")
	c.kill(t, "runs-1")
	eventually(t, "the place of a dead member is held", func(context.Context) bool {
		runs := list(api.Path)["runs"]
		return runs.State == api.BelowMinimum && len(runs.Claims) == 1 && runs.Claims[0].Member == "runs-1" && runs.Claims[0].Until.After(time.Now())
	})
}

// token is one of a new service account.
func (c *cluster) token(t *testing.T, name string) string {
	t.Helper()
	accounts := c.client.CoreV1().ServiceAccounts(space)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	return token.Status.Token
}

// allow lets a service account see the gangs, by the role that is shipped.
func (c *cluster) allow(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile("../../install/user-roles.yaml")
	must(t, err)
	var role rbacv1.ClusterRole
	for _, document := range strings.Split(string(text), "\n---\n") {
		if strings.Contains(document, "name: gangctl:gangs-viewer") {
			must(t, yaml.UnmarshalStrict([]byte(document), &role))
		}
	}
	_, err = c.client.RbacV1().ClusterRoles().Create(t.Context(), &role, metav1.CreateOptions{})
	must(t, err)
	_, err = c.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "sees-gangs"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: space, Name: name}},
	}, metav1.CreateOptions{})
	must(t, err)
}

// get sends a request to the scheduler itself.
func (s *ownScheduler) get(t *testing.T, token, path string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.address()+path, nil)
	must(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	must(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(data)
}
