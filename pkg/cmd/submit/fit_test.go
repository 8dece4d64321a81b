package submit

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

const podsPath = "/api/v1/namespaces/research/pods"

// accepting is a cluster that takes every create, which has to be a dry run.
func accepting(t *testing.T, c *clustertest.Cluster) *kubetest.Cluster {
	t.Helper()
	l := kubetest.Serve(t, c.Done())
	for _, path := range []string{jobsPath, groupsPath, podsPath} {
		l.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("dryRun") != "All" {
				t.Errorf("not a dry run: %s %s", r.Method, r.URL)
			}
			if r.Header.Get("Content-Type") == "application/json" {
				echo("uid-probed")(w, r)
				return
			}
			kubetest.Write(w, 201, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}})
		})
	}
	return l
}

// nodesOf8 is a cluster with as many nodes of 8 GPUs each.
func nodesOf8(nodes int) *clustertest.Cluster { return clustertest.New().Nodes(nodes, 8) }

// Whether the job would start is reported with the texts and codes of why it does not, and 0 if it would. Nothing is created.
func TestFit(t *testing.T) {
	path := file(t, jobFile)
	for _, args := range [][]string{
		{"submit", "-f", path}, {"submit", "tf", "-f", path}, {"submit", "tf", "llama", "--image", "i", "--workers", "2", "--gpus", "8"},
	} {
		for _, tt := range []struct {
			nodes int
			code  failure.Code
			want  string
		}{{2, 0, "FITS_NOW  llama: fits now: room for all 2 members on n1, n2\n"}, {1, 6, "BLOCKED  llama"}} {
			l := accepting(t, nodesOf8(tt.nodes))
			out, _, failed := typeLine(t.Context(), l.Client, "", append(args, "--dry-run=fit")...)
			code := failure.CodeOK
			if failed != nil {
				code = failed.Code
			}
			if code != tt.code || failed != nil && failed.Message != "" || !strings.HasPrefix(out, tt.want) {
				t.Errorf("%v, %d nodes: got %v\n%s", args, tt.nodes, failed, out)
			}
			// The operator's scheduler is called gang here, not what gangctl would set by itself.
			if !strings.Contains(out, "Note  dialect scheduler-plugins: scheduler gang runs here and reads it\n") {
				t.Errorf("%v: nothing is reported of the scheduler:\n%s", args, out)
			}
			posted := map[string]int{}
			for _, r := range l.Requests() {
				if line, query, _ := strings.Cut(r, "?"); strings.HasPrefix(r, "POST") && strings.Contains(query, "dryRun=All") {
					posted[line]++
				}
			}
			if posted["POST "+jobsPath] != 1 || posted["POST "+groupsPath] != 1 || posted["POST "+podsPath] != 1 {
				t.Errorf("%v: probed %v", args, posted)
			}
		}
	}
}

func TestFitJSON(t *testing.T) {
	l := accepting(t, nodesOf8(2))
	out, _, failed := typeLine(t.Context(), l.Client, jobFile, "submit", "-f", "-", "--dry-run=fit", "-o", "json", "--scheduler", "gang")
	var a struct {
		Verdict   string
		Exit      int
		Placement []struct{ Member, Node string }
		Notes     []string
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil || failed != nil || a.Verdict != "FITS_NOW" || a.Exit != 0 || len(a.Placement) != 2 || len(a.Notes) != 1 {
		t.Errorf("got %v, %v\n%s", failed, err, out)
	}
}

// The API server's answer to the objects, and to a pod of the job, is part of the answer.
func TestFitQueriesTheServer(t *testing.T) {
	denied := func(resource string) string {
		return resource + ` is forbidden: User "eve" cannot create resource "` + resource + `" in API group "x" in the namespace "research"`
	}
	tests := map[string]struct {
		path, message string
		status        int
		reason        metav1.StatusReason
		code          failure.Code
		want          []string
	}{
		"an account is missing": {podsPath, `pods "llama-worker-0" is forbidden: error looking up service account research/trainer: serviceaccount "trainer" not found`, 403, metav1.StatusReasonForbidden, 4,
			[]string{`BLOCKED  llama: ServiceAccount "trainer" does not exist in namespace research`}},
		"a webhook denies the job":   {jobsPath, "admission webhook denied the request: no team label", 400, metav1.StatusReasonBadRequest, 4, []string{"BLOCKED  the API server does not accept TFJob llama: admission webhook denied the request: no team label"}},
		"the PodGroup is refused":    {groupsPath, "exceeded quota: groups", 403, metav1.StatusReasonForbidden, 5, []string{"BLOCKED  the PodGroup of llama cannot be created: exceeded quota: groups"}},
		"no right to create the job": {jobsPath, denied("tfjobs"), 403, metav1.StatusReasonForbidden, 8, []string{"UNKNOWN  llama cannot be submitted: you may not create tfjobs.kubeflow.org in namespace research", "- create\n", "placement ok 2/2"}},
		"no right to try a pod":      {podsPath, denied("pods"), 403, metav1.StatusReasonForbidden, 0, []string{"FITS_NOW", "pods in namespace research: you may not create; whether the API server would accept the pods was not tried"}},
		"no answer to a pod": {podsPath, "etcdserver: leader changed", 500, metav1.StatusReasonInternalError, 0,
			[]string{"FITS_NOW", "pods unknown 0/2", "Confidence heuristic; not modelled: whether the API server accepts the pods", "create Pod research/llama-worker-0: etcdserver: leader changed"}},
		"no dry run of a pod": {podsPath, noDryRun, 400, metav1.StatusReasonBadRequest, 0,
			[]string{"FITS_NOW", "pods unknown 0/2", `create Pod research/llama-worker-0: ` + noDryRun}},
		"no dry run of the job": {jobsPath, noDryRun, 400, metav1.StatusReasonBadRequest, 0,
			[]string{"FITS_NOW", "not modelled: whether the API server accepts the TFJob", "create TFJob research/llama: " + noDryRun}},
		"no dry run of the PodGroup": {groupsPath, noDryRun, 400, metav1.StatusReasonBadRequest, 0,
			[]string{"FITS_NOW", "not modelled: whether the API server accepts the PodGroup", "create PodGroup research/llama: " + noDryRun}},
		"no right to make a PodGroup": {groupsPath, denied("podgroups"), 403, metav1.StatusReasonForbidden, 8, []string{"UNKNOWN  llama cannot be submitted: you may not create podgroups.scheduling.x-k8s.io in namespace research"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := kubetest.Serve(t, nodesOf8(2).Done())
			for _, path := range []string{jobsPath, groupsPath, podsPath} {
				if path == tt.path {
					l.Refuse("POST "+path, tt.status, tt.reason, tt.message, nil)
					continue
				}
				l.Answer("POST "+path, 201, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}})
			}
			out, _, failed := typeLine(t.Context(), l.Client, "", "submit", "-f", file(t, jobFile), "--dry-run=fit", "--scheduler", "gang")
			code := failure.CodeOK
			if failed != nil {
				code = failed.Code
			}
			if code != tt.code {
				t.Errorf("got %d: %v", code, failed)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}

// A webhook that looks for the owner of a pod does not find a job that is not submitted, which denies no pods.
func TestFitWhereAWebhookReadsOwners(t *testing.T) {
	for _, also := range []string{"", "no team label"} {
		l := kubetest.Serve(t, nodesOf8(2).Done())
		l.HandleFunc("POST "+jobsPath, echo("uid-probed"))
		l.HandleFunc("POST "+groupsPath, echo("uid-group"))
		l.HandleFunc("POST "+podsPath, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			switch {
			case err != nil || bytes.Contains(body, []byte("uid-probed")):
				kubetest.Write(w, 400, kubetest.Status(400, metav1.StatusReasonBadRequest, `admission webhook "mpod.kb.io" denied the request: TFJob.kubeflow.org "llama" not found`, nil))
			case also != "":
				kubetest.Write(w, 400, kubetest.Status(400, metav1.StatusReasonBadRequest, `admission webhook "team" denied the request: `+also, nil))
			default:
				kubetest.Write(w, 201, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}})
			}
		})
		out, _, failed := typeLine(t.Context(), l.Client, "", "submit", "-f", file(t, jobFile), "--dry-run=fit")
		if fits := strings.HasPrefix(out, "FITS_NOW"); fits != (also == "") || strings.Contains(out, "not found") || !strings.Contains(out, also) {
			t.Errorf("denied for %q: got %v\n%s", also, failed, out)
		}
	}
}

func TestFitErrors(t *testing.T) {
	taken := nodesOf8(2).Add(clustertest.Gang{Namespace: "research", Name: "llama", Workers: 1})
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := taken.Done().Save(path); err != nil {
		t.Fatal(err)
	}
	const exists = "create TFJob research/llama: a TFJob of this name exists"
	if _, _, failed := typeLine(t.Context(), noCluster, "", "submit", "-f", file(t, jobFile), "--dry-run=fit", "--from", path); failed == nil || failed.Message != exists || failed.Code != 1 {
		t.Errorf("from a file: got %+v", failed)
	}
	for name, tt := range map[string]struct {
		status *metav1.Status
		want   string
	}{
		"it exists":    {kubetest.Status(409, metav1.StatusReasonAlreadyExists, `tfjobs "llama" already exists`, &metav1.StatusDetails{Name: "llama"}), exists},
		"no namespace": {kubetest.Status(404, metav1.StatusReasonNotFound, `namespaces "research" not found`, &metav1.StatusDetails{Name: "research", Kind: "namespaces"}), `create TFJob research/llama: namespaces "research" not found`},
		"overloaded":   {kubetest.Status(503, metav1.StatusReasonServiceUnavailable, "try later", nil), "create TFJob research/llama: try later"},
	} {
		t.Run(name, func(t *testing.T) {
			l := kubetest.Serve(t, nodesOf8(2).Done())
			l.Answer("POST "+jobsPath, int(tt.status.Code), tt.status)
			out, _, failed := typeLine(t.Context(), l.Client, "", "submit", "-f", file(t, jobFile), "--dry-run=fit")
			if failed == nil || failed.Message != tt.want || failed.Code != 1 || out != "" {
				t.Errorf("got %+v, %s", failed, out)
			}
		})
	}
	if _, _, failed := typeLine(t.Context(), noCluster, "", "submit", "-f", file(t, jobFile), "--dry-run=fit", "--from", "absent.yaml"); failed == nil || !strings.Contains(failed.Message, "read snapshot: open absent.yaml") {
		t.Errorf("got %+v", failed)
	}
}

// A cluster without PodGroups, or without TFJobs, is no place for the job, and the answer reports which.
func TestFitWhereNothingServes(t *testing.T) {
	for missing, want := range map[string]string{"podgroups.scheduling.x-k8s.io/v1alpha1": "the PodGroup of llama cannot be created: the cluster does not serve podgroups.scheduling.x-k8s.io", "tfjobs.kubeflow.org/v1": "this cluster does not know tfjobs.kubeflow.org"} {
		c := nodesOf8(2)
		var served []string
		for _, r := range c.S.Server.Resources {
			if r != missing {
				served = append(served, r)
			}
		}
		c.S.Server.Resources = served
		path := filepath.Join(t.TempDir(), "s.yaml")
		if err := c.Done().Save(path); err != nil {
			t.Fatal(err)
		}
		out, _, failed := typeLine(t.Context(), noCluster, "", "submit", "-f", file(t, jobFile), "--dry-run=fit", "--from", path, "--dialect", "scheduler-plugins")
		if failed == nil || failed.Code != 5 || !strings.Contains(out, want) {
			t.Errorf("without %s: got %v\n%s", missing, failed, out)
		}
	}
}
