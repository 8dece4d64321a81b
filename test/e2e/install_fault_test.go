package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/sandbox/component"
	"github.com/gangctl/gangctl/sandbox/datadir"
	"github.com/gangctl/gangctl/sandbox/supervise"
)

// gatekeeper is an admission webhook of the cluster that the test controls.
type gatekeeper struct {
	mu sync.Mutex
	// refuse is the resource of which everything is refused; onReview is called for
	// everything else.
	refuse   string
	onReview func(resource, name string)
}

func (g *gatekeeper) set(refuse string, onReview func(resource, name string)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse, g.onReview = refuse, onReview
}

func (g *gatekeeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.mu.Lock()
	refuse, onReview := g.refuse, g.onReview
	g.mu.Unlock()
	resource := review.Request.Resource.Resource
	if onReview != nil {
		onReview(resource, review.Request.Name)
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: resource != refuse, Result: &metav1.Status{Message: "none of these today"}}
	_ = json.NewEncoder(w).Encode(review)
}

// guard has a webhook review what is written into the scheduler's namespace.
func guard(t *testing.T, s *site) *gatekeeper {
	t.Helper()
	g := &gatekeeper{}
	server := httptest.NewTLSServer(g)
	t.Cleanup(server.Close)
	ignore, none, timeout := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone, int32(5)
	hook := admissionregistrationv1.ValidatingWebhook{
		Name: "gatekeeper.example.com", AdmissionReviewVersions: []string{"v1"}, FailurePolicy: &ignore, SideEffects: &none, TimeoutSeconds: &timeout,
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": install.DefaultNamespace}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{"", "policy"}, APIVersions: []string{"v1"},
				Resources: []string{"configmaps", "poddisruptionbudgets", "pods"}},
		}},
	}
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "gatekeeper"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{hook}}
	_, err := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), config, metav1.CreateOptions{})
	must(t, err)
	return g
}

// TestInstallFaults installs while things go wrong.
func TestInstallFaults(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	g := guard(t, s)
	for _, step := range []struct {
		name string
		run  func(*testing.T, *site, *gatekeeper)
	}{{"server dies", serverDies}, {"one is refused", oneIsRefused}, {"another client scales", anotherClientScales}, {"pods are refused", podsAreRefused}, {"container ends", containerEnds}} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, s, g) }) {
			return // each builds on what the one before has left
		}
	}
}

// serverDies kills the API server while the configuration is written, long before the Deployment.
func serverDies(t *testing.T, s *site, g *gatekeeper) {
	var once sync.Once
	g.set("", func(resource, name string) {
		if resource == "configmaps" && name == install.SchedulerInstance {
			once.Do(func() { kill(t, s, component.APIServer) })
		}
	})
	out, stderr, code := s.types(t, "install", "scheduler", "--image", "gangctl:test", installTimeout)
	if code != 1 || !strings.Contains(out, "namespace/gangctl-system created\n") || strings.Contains(out, "deployment") ||
		!strings.Contains(stderr, "objects are done; to complete them, run the same command again") || strings.Count(stderr, "error: ") != 1 {
		t.Fatalf("exit code %d", code)
	}
	eventually(t, "the sandbox knows what it lost", func(context.Context) bool {
		state, err := supervise.ReadState(datadir.Dir(s.DataDir))
		return err == nil && len(state.Ended()) > 0
	})
	if _, stderr, err := s.Run("up"); err != nil {
		t.Fatalf("sandbox up: %v\n%s", err, stderr)
	}
	out, stderr, code = s.types(t, "install", "scheduler", "--image", "gangctl:test", installTimeout)
	if code != 0 || !strings.Contains(out, "namespace/gangctl-system unchanged\n") || !strings.Contains(out, "deployment.apps/gang-scheduler created\n") ||
		!strings.Contains(stderr, "is ready in namespace") {
		t.Fatalf("exit code %d: what was begun is not completed", code)
	}
	placeGang(t, s, "afterwards")
}

func kill(t *testing.T, s *site, name string) {
	state, err := supervise.ReadState(datadir.Dir(s.DataDir))
	if err != nil {
		t.Error(err)
		return
	}
	for _, c := range state.Components {
		if c.Name == name {
			t.Logf("killing %s, process %d", name, c.PID)
			if err := syscall.Kill(c.PID, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
}

func oneIsRefused(t *testing.T, s *site, g *gatekeeper) {
	g.set("poddisruptionbudgets", nil)
	out, stderr, code := s.types(t, "install", "scheduler", "--image", "gangctl:test", "--ha", installTimeout)
	want := `error: apply PodDisruptionBudget gangctl-system/gang-scheduler: admission webhook "gatekeeper.example.com" denied the request: none of these today` + "\n"
	if code != 1 || !strings.Contains(stderr, want) || !strings.Contains(out, "deployment.apps/gang-scheduler configured\n") || strings.Count(stderr, "error: ") != 1 {
		t.Fatalf("exit code %d", code)
	}
	g.set("", nil)
	out, stderr, code = s.types(t, "install", "scheduler", "--image", "gangctl:test", "--ha", installTimeout)
	if code != 0 || !strings.Contains(out, "poddisruptionbudget.policy/gang-scheduler created\n") || !strings.Contains(stderr, "1 created, 0 configured,") {
		t.Fatalf("exit code %d", code)
	}
	d, err := s.client.AppsV1().Deployments(install.DefaultNamespace).Get(t.Context(), install.SchedulerInstance, metav1.GetOptions{})
	must(t, err)
	if d.Status.AvailableReplicas != 2 {
		t.Errorf("%d replicas are available", d.Status.AvailableReplicas)
	}
}

// anotherClientScales: fields that another program owns are not taken from it without consent.
func anotherClientScales(t *testing.T, s *site, _ *gatekeeper) {
	scale := []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"gang-scheduler","namespace":"gangctl-system"},"spec":{"replicas":3}}`)
	force := true
	_, err := s.client.AppsV1().Deployments(install.DefaultNamespace).Patch(t.Context(), install.SchedulerInstance, types.ApplyPatchType, scale,
		metav1.PatchOptions{FieldManager: "autoscaler", Force: &force})
	must(t, err)
	_, stderr, code := s.types(t, "install", "scheduler", "--image", "gangctl:test", installTimeout)
	if code != 1 || !strings.Contains(stderr, "error: the gang scheduler stays as it is: apply Deployment gangctl-system/gang-scheduler: others own what would be changed: .spec.replicas is owned by autoscaler\n") {
		t.Fatalf("exit code %d", code)
	}
	out, _, code := s.types(t, "install", "scheduler", "--image", "gangctl:test", "--force-conflicts", "--ha=false", installTimeout)
	if code != 0 || !strings.Contains(out, "poddisruptionbudget.policy/gang-scheduler pruned\n") {
		t.Fatalf("exit code %d", code)
	}
}

// podsAreRefused: that an installation does not get ready is reported with the reason.
func podsAreRefused(t *testing.T, s *site, g *gatekeeper) {
	g.set("pods", nil)
	defer g.set("", nil)
	_, stderr, code := s.types(t, "install", "scheduler", "--image", "gangctl:test", "--serve", "volcano", "--timeout=30s")
	if code != 4 || !strings.Contains(stderr, "error: Deployment gangctl-system/gang-scheduler is not ready after 30s: its pods cannot be created: ") ||
		!strings.Contains(stderr, "none of these today") {
		t.Fatalf("exit code %d", code)
	}
}

// containerEnds: a scheduler that does not start has the reason in its log.
func containerEnds(t *testing.T, s *site, _ *gatekeeper) {
	broken := []byte(`{"data":{"scheduler.yaml":"kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1\nparallelism: -1\n"}}`)
	_, err := s.client.CoreV1().ConfigMaps(install.DefaultNamespace).Patch(t.Context(), install.SchedulerInstance, types.MergePatchType, broken, metav1.PatchOptions{})
	must(t, err)
	again := []byte(`{"spec":{"template":{"metadata":{"annotations":{"restarted":"yes"}}}}}`)
	_, err = s.client.AppsV1().Deployments(install.DefaultNamespace).Patch(t.Context(), install.SchedulerInstance, types.MergePatchType, again, metav1.PatchOptions{})
	must(t, err)
	var lines []string
	err = apply.WaitReady(t.Context(), s.client, install.DefaultNamespace, install.SchedulerInstance, 45*time.Second, func(line string) { lines = append(lines, line) })
	f := failure.From(err)
	if f == nil || f.Code != failure.CodeTimedOut || !strings.Contains(f.Message, "container scheduler ended ") || !strings.Contains(f.Message, "with exit code 1 (Error)") {
		t.Errorf("got %+v", f)
	}
	if all := strings.Join(lines, "\n"); !strings.Contains(all, "log: ") || !strings.Contains(all, "parallelism") {
		t.Errorf("the log is not shown: %q", lines)
	}
}
