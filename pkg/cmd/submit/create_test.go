package submit

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

const (
	jobsPath   = "/apis/kubeflow.org/v1/namespaces/research/tfjobs"
	groupsPath = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/research/podgroups"
)

// echo stores nothing and answers with what it got, and a uid.
func echo(uid string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var object map[string]any
		if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
			panic(err)
		}
		object["metadata"].(map[string]any)["uid"] = uid
		kubetest.Write(w, http.StatusCreated, object)
	}
}

// afterRehearsal answers a dry run as if all were well, and the real request with a Status.
func afterRehearsal(code int, reason metav1.StatusReason, message string, details *metav1.StatusDetails) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("dryRun") {
			echo("uid-rehearsed")(w, r)
			return
		}
		kubetest.Write(w, code, kubetest.Status(code, reason, message, details))
	}
}

// status answers with a Status.
func status(code int, reason metav1.StatusReason, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		kubetest.Write(w, code, kubetest.Status(code, reason, message, nil))
	}
}

// submit runs the command line against the server.
func submit(ctx context.Context, s *kubetest.Server, args ...string) (stdout, stderr string, err error) {
	io, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	f := &cmdutil.Factory{IO: io, Args: args, Suffix: func() string { return "abcde" }, Client: s.Client,
		Namespace: func() (string, error) { return "research", nil }}
	cmd := newKindCommand(f, tfKind(), nil)
	line := []string{"llama", "--image", "i"}
	if !slices.Contains(args, "--dialect") {
		line = append(line, "--dialect", "scheduler-plugins")
	}
	err = commandtest.Execute(ctx, cmd, append(line, args...)...)
	return out.String(), errOut.String(), err
}

// whoAmI is where the server reports who the caller is.
const whoAmI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

func TestCreate(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("POST "+whoAmI, 201, map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "status": map[string]any{"userInfo": map[string]any{"username": "ann"}}})
	s.HandleFunc("POST "+jobsPath, echo("uid-1"))
	s.HandleFunc("POST "+groupsPath, echo("uid-2"))
	stdout, stderr, err := submit(t.Context(), s)
	if err != nil || stdout != "tfjob.kubeflow.org/llama created\npodgroup.scheduling.x-k8s.io/llama created\n" || stderr != "" {
		t.Fatalf("got %q, %q, %v", stdout, stderr, err)
	}
	const options = "fieldManager=gangctl&fieldValidation=Strict"
	want := []string{"POST " + groupsPath + "?dryRun=All&" + options, "POST " + jobsPath + "?dryRun=All&" + options, "POST " + whoAmI, "POST " + jobsPath + "?" + options, "POST " + groupsPath + "?" + options}
	if got := s.Requests(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("requests: %q", got)
	}
	if !strings.Contains(s.Body(3), `"gangctl.dev/spec-hash":"sha256:`) || strings.Contains(s.Body(1), "spec-hash") {
		t.Errorf("the hash is not that of the job: %s", s.Body(3))
	}
	if !strings.Contains(s.Body(3), `"gangctl.dev/submitted-by":"ann"`) || strings.Contains(s.Body(1), "submitted-by") {
		t.Errorf("the job does not have its submitter: %s", s.Body(3))
	}
	if body := s.Body(4); !strings.Contains(body, `"ownerReferences":[{"apiVersion":"kubeflow.org/v1","blockOwnerDeletion":false,"kind":"TFJob","name":"llama","uid":"uid-1"}]`) {
		t.Errorf("the PodGroup is not owned by the job: %s", body)
	}
}

func TestServerDryRun(t *testing.T) {
	s := kubetest.New(t)
	s.HandleFunc("POST "+jobsPath, echo("uid-1"))
	s.Refuse("POST "+groupsPath, 403, metav1.StatusReasonForbidden, "exceeded quota", nil)
	_, _, err := submit(t.Context(), s, "--dry-run=server")
	if err == nil || err.Error() != "create PodGroup research/llama: exceeded quota" {
		t.Errorf("got %v", err)
	}
	for _, r := range s.Requests() {
		if !strings.Contains(r, "dryRun=All") {
			t.Errorf("without dryRun: %s", r)
		}
	}
}

// Two jobs whose pods name one gang by labels would be one gang.
func TestGangOfLabelsIsTaken(t *testing.T) {
	pods := func(owner *metav1.OwnerReference, phase corev1.PodPhase) func(*kubetest.Server) {
		p := kubetest.Pod("research", "llama", 0, "n1", "")
		p.OwnerReferences, p.Status.Phase = nil, phase
		if owner != nil {
			owner.Controller = new(bool)
			*owner.Controller = true
			p.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		return func(s *kubetest.Server) { s.Answer("GET /api/v1/namespaces/research/pods", 200, kubetest.PodList(p)) }
	}
	of := func(kind string) *metav1.OwnerReference {
		return &metav1.OwnerReference{APIVersion: "kubeflow.org/v1", Kind: kind, Name: "llama", UID: "u"}
	}
	for name, c := range map[string]struct {
		prepare func(*kubetest.Server)
		want    string
	}{
		"by nobody":                           {func(*kubetest.Server) {}, ""},
		"by pods of another job":              {pods(of("PyTorchJob"), corev1.PodRunning), "create gang research/llama: it is that of PyTorchJob research/llama"},
		"by pods of another job, which ended": {pods(of("PyTorchJob"), corev1.PodSucceeded), ""},
		"by pods of an earlier job":           {pods(of("TFJob"), corev1.PodRunning), ""},
		"by a pod":                            {pods(nil, corev1.PodPending), "create gang research/llama: Pod research/llama-worker-0 is in it"},
		"by a job without pods": {func(s *kubetest.Server) {
			template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"pod-group.scheduling.sigs.k8s.io/name": "llama"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "pytorch"}}}}
			s.Answer("GET /apis/kubeflow.org/v1/namespaces/research/pytorchjobs/llama", 200, map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": map[string]any{"name": "llama", "namespace": "research"},
				"spec": map[string]any{"pytorchReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": 2, "template": template}}}})
		}, "create gang research/llama: it is that of PyTorchJob research/llama"},
	} {
		s := kubetest.New(t).NoJobs()
		s.HandleFunc("POST "+jobsPath, echo("uid-1"))
		c.prepare(s)
		_, _, err := submit(t.Context(), s, "--dialect", "labels")
		if (err != nil) != (c.want != "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCreateJSONIsOneDocument(t *testing.T) {
	s := kubetest.New(t)
	s.HandleFunc("POST "+jobsPath, echo("uid-1"))
	s.HandleFunc("POST "+groupsPath, echo("uid-2"))
	stdout, _, err := submit(t.Context(), s, "-o", "json")
	var list struct {
		Kind  string
		Items []struct{ Kind string }
	}
	if err != nil || json.Unmarshal([]byte(stdout), &list) != nil || list.Kind != "List" || len(list.Items) != 2 || list.Items[1].Kind != "PodGroup" {
		t.Errorf("got %v, %s", err, stdout)
	}
}

func TestCreateFails(t *testing.T) {
	denied := `podgroups.scheduling.x-k8s.io is forbidden: User "bob" cannot create resource "podgroups" in API group "scheduling.x-k8s.io" in the namespace "research"`
	forbidden := func(s *kubetest.Server) {
		s.HandleFunc("POST "+groupsPath, afterRehearsal(403, metav1.StatusReasonForbidden, denied, nil))
	}
	jobStored := func(s *kubetest.Server) { s.HandleFunc("POST "+jobsPath, echo("uid-1")) }
	deletes := func(s *kubetest.Server) {
		s.Answer("DELETE "+jobsPath+"/llama", 200, &metav1.Status{Status: metav1.StatusSuccess})
	}
	groupStored := func(s *kubetest.Server) { s.HandleFunc("POST "+groupsPath, echo("uid-2")) }
	exists := func(path, kind string) func(*kubetest.Server) {
		return func(s *kubetest.Server) {
			s.HandleFunc("POST "+path, afterRehearsal(409, metav1.StatusReasonAlreadyExists, `x "llama" already exists`, &metav1.StatusDetails{Name: "llama", Kind: kind}))
		}
	}
	groupOf := func(uid string) func(*kubetest.Server) {
		return func(s *kubetest.Server) {
			s.Answer("GET "+groupsPath+"/llama", 200, map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
				"metadata": map[string]any{"name": "llama", "namespace": "research", "ownerReferences": []any{map[string]any{"uid": uid, "controller": true}}}})
		}
	}
	tests := []struct {
		name    string
		server  []func(*kubetest.Server)
		message string
		hint    string // a part
		deleted bool
	}{
		{"no TFJob CRD", []func(*kubetest.Server){groupStored}, "create TFJob research/llama: the cluster does not serve tfjobs.kubeflow.org (v1)", "Training Operator", false},
		{"served as another version", []func(*kubetest.Server){groupStored, func(s *kubetest.Server) {
			s.Answer("GET /apis", 200, metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "kubeflow.org", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "kubeflow.org/v2", Version: "v2"}}}}})
			s.Answer("GET /apis/kubeflow.org/v2", 200, metav1.APIResourceList{GroupVersion: "kubeflow.org/v2", APIResources: []metav1.APIResource{{Name: "tfjobs", Kind: "TFJob", Namespaced: true}}})
		}}, "create TFJob research/llama: the cluster does not serve tfjobs.kubeflow.org (v1), but v2", "write it as kubeflow.org/v2, whose fields may be others; or ask an administrator", false},
		{"job exists", []func(*kubetest.Server){groupStored, exists(jobsPath, "tfjobs")}, "create TFJob research/llama: a TFJob of this name exists",
			"see it with `gangctl get llama -n research`, remove it with `gangctl delete llama -n research`", false},
		{"no right to PodGroups", []func(*kubetest.Server){jobStored, forbidden, deletes},
			"create PodGroup research/llama: " + denied + "; TFJob research/llama was deleted again", `verbs: ["create"]`, true},
		{"another user's PodGroup", []func(*kubetest.Server){jobStored, exists(groupsPath, "podgroups"), groupOf("uid-0"), deletes},
			`create PodGroup research/llama: x "llama" already exists; TFJob research/llama was deleted again`, "choose another name", true},
		{"the operator was faster", []func(*kubetest.Server){jobStored, exists(groupsPath, "podgroups"), groupOf("uid-1")}, "", "", false},
		{"roll-back fails", []func(*kubetest.Server){jobStored, forbidden, func(s *kubetest.Server) {
			s.Refuse("DELETE "+jobsPath+"/llama", 500, metav1.StatusReasonInternalError, "etcd is gone", nil)
		}}, "create PodGroup research/llama: " + denied + "; TFJob research/llama is left behind, because deleting it failed as well: etcd is gone",
			"remove it with `gangctl delete llama -n research`\nask an administrator for this rule", true},
		{"gone before the roll-back", []func(*kubetest.Server){jobStored, forbidden, func(s *kubetest.Server) {
			s.Refuse("DELETE "+jobsPath+"/llama", 404, metav1.StatusReasonNotFound, "no", &metav1.StatusDetails{Name: "llama"})
		}}, "create PodGroup research/llama: " + denied + "; TFJob research/llama was deleted again", "verbs", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := kubetest.New(t)
			for _, prepare := range tt.server {
				prepare(s)
			}
			stdout, _, err := submit(t.Context(), s)
			if tt.message == "" {
				if err != nil || !strings.Contains(stdout, "podgroup.scheduling.x-k8s.io/llama") {
					t.Fatalf("got %v, %q", err, stdout)
				}
				return
			}
			got := failure.From(err)
			if got == nil || got.Message != tt.message || !strings.Contains(got.Hint, tt.hint) || got.Code != failure.CodeError || stdout != "" {
				t.Errorf("got %+v, stdout %q", got, stdout)
			}
			last := len(s.Requests()) - 1
			if deleted := strings.HasPrefix(s.Requests()[last], "DELETE "); deleted != tt.deleted {
				t.Fatalf("requests: %q", s.Requests())
			}
			if tt.deleted && (!strings.Contains(s.Body(last), `"preconditions":{"uid":"uid-1"}`) || !strings.Contains(s.Body(last), `"propagationPolicy":"Background"`)) {
				t.Errorf("delete options: %s", s.Body(last))
			}
		})
	}
}

// Ctrl-C after the job is stored and before its PodGroup is: the job goes.
func TestInterruptRollsBack(t *testing.T) {
	s := kubetest.New(t)
	ctx, interrupt := context.WithCancel(t.Context())
	s.HandleFunc("POST "+jobsPath, echo("uid-1"))
	s.HandleFunc("POST "+groupsPath, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("dryRun") {
			echo("uid-rehearsed")(w, r)
			return
		}
		interrupt()
		<-r.Context().Done()
	})
	s.Answer("DELETE "+jobsPath+"/llama", 200, &metav1.Status{Status: metav1.StatusSuccess})
	_, _, err := submit(ctx, s)
	got := failure.From(err)
	if got == nil || got.Code != failure.CodeInterrupted || got.Message != "interrupted; TFJob research/llama was deleted again" {
		t.Errorf("got %+v", got)
	}
	if requests := s.Requests(); !strings.HasPrefix(requests[len(requests)-1], "DELETE ") {
		t.Errorf("requests: %q", requests)
	}
}

// unanswered stores the first job that is created, with changes, and fails to answer it. Later creates find the name taken.
func unanswered(s *kubetest.Server, change func(map[string]any), fail http.HandlerFunc) {
	var mu sync.Mutex
	var job map[string]any
	s.HandleFunc("POST "+jobsPath, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("dryRun") {
			echo("uid-rehearsed")(w, r)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if job != nil {
			kubetest.Write(w, 409, kubetest.Status(409, metav1.StatusReasonAlreadyExists, "exists", &metav1.StatusDetails{Name: "llama"}))
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&job); err != nil {
			panic(err)
		}
		job["metadata"].(map[string]any)["uid"] = "uid-1"
		change(job["metadata"].(map[string]any))
		fail(w, r)
	})
	s.HandleFunc("GET "+jobsPath+"/llama", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		kubetest.Write(w, 200, job)
	})
}

// A job that was stored though the answer to its create failed gets its PodGroup, and is not called failed.
func TestStoredWithoutAnswer(t *testing.T) {
	for name, fail := range map[string]http.HandlerFunc{
		"504":               status(504, metav1.StatusReasonTimeout, "request did not complete within requested timeout"),
		"500":               status(500, metav1.StatusReasonInternalError, "etcdserver: request timed out"),
		"a lost connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t)
			unanswered(s, func(map[string]any) {}, fail)
			s.HandleFunc("POST "+groupsPath, echo("uid-2"))
			stdout, stderr, err := submit(t.Context(), s)
			if err != nil || stdout != "tfjob.kubeflow.org/llama created\npodgroup.scheduling.x-k8s.io/llama created\n" || !strings.HasSuffix(stderr, "; TFJob research/llama is stored all the same\n") {
				t.Errorf("got %q, %q, %v", stdout, stderr, err)
			}
		})
	}
}

// A job of another command that came in between is left alone.
func TestTakenWithoutAnswer(t *testing.T) {
	s := kubetest.New(t)
	unanswered(s, func(meta map[string]any) {
		meta["annotations"] = map[string]any{"gangctl.dev/command": "gangctl submit tf llama --image other"}
	}, status(504, metav1.StatusReasonTimeout, "request did not complete within requested timeout"))
	s.HandleFunc("POST "+groupsPath, echo("uid-2"))
	_, _, err := submit(t.Context(), s)
	if err == nil || err.Error() != "create TFJob research/llama: a TFJob of this name exists" {
		t.Errorf("got %v", err)
	}
	for _, r := range s.Requests() {
		if strings.HasPrefix(r, "DELETE ") {
			t.Errorf("another command's job is deleted: %s", r)
		}
	}
}

// A job that was not stored is created again.
func TestCreatedAgain(t *testing.T) {
	s := kubetest.New(t)
	var creates atomic.Int32
	s.HandleFunc("POST "+jobsPath, func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("dryRun") && creates.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		echo("uid-1")(w, r)
	})
	s.HandleFunc("POST "+groupsPath, echo("uid-2"))
	s.Refuse("GET "+jobsPath+"/llama", 404, metav1.StatusReasonNotFound, "no", &metav1.StatusDetails{Name: "llama"})
	stdout, _, err := submit(t.Context(), s)
	if err != nil || !strings.HasPrefix(stdout, "tfjob.kubeflow.org/llama created\n") || creates.Load() != 2 {
		t.Errorf("got %q, %v after %d creates", stdout, err, creates.Load())
	}
}

// Only where it cannot be found out whether a job exists, it may: not after a dry run.
func TestConnectionLostWhileCreating(t *testing.T) {
	for _, tt := range []struct {
		name     string
		args     []string
		dryRun   bool // its connection is lost, too
		mayExist bool
	}{
		{"create", nil, false, true},
		{"rehearsal", nil, true, false},
		{"dry run", []string{"--dry-run=server"}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := kubetest.New(t)
			s.HandleFunc("POST "+groupsPath, echo("uid-2"))
			s.HandleFunc("POST "+jobsPath, func(w http.ResponseWriter, r *http.Request) {
				if tt.dryRun || !r.URL.Query().Has("dryRun") {
					panic(http.ErrAbortHandler)
				}
				echo("uid-rehearsed")(w, r)
			})
			s.Refuse("GET "+jobsPath+"/llama", 403, metav1.StatusReasonForbidden, "no", nil)
			_, _, err := submit(t.Context(), s, tt.args...)
			got := failure.From(err)
			if got == nil || !strings.HasPrefix(got.Message, "create TFJob research/llama: the connection to the API server at http://127.0.0.1:") ||
				strings.Contains(got.Hint, "the job may exist all the same: see `gangctl get llama -n research`") != tt.mayExist {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestInterruptWhileCreating(t *testing.T) {
	s := kubetest.New(t)
	ctx, interrupt := context.WithCancel(t.Context())
	s.HandleFunc("POST "+groupsPath, echo("uid-2"))
	s.HandleFunc("POST "+jobsPath, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("dryRun") {
			echo("uid-rehearsed")(w, r)
			return
		}
		interrupt()
		<-r.Context().Done()
	})
	_, _, err := submit(ctx, s)
	got := failure.From(err)
	if got == nil || got.Code != failure.CodeInterrupted || got.Message != "interrupted while creating TFJob research/llama: it may exist" ||
		!strings.HasSuffix(got.Hint, "`gangctl delete llama -n research`") {
		t.Errorf("got %+v", got)
	}
}

// noDryRun is what the API server answers to a dry run that a webhook may not see.
const noDryRun = `admission webhook "w" does not support dry run`

// A webhook that has no dry runs leaves a job without hash, and a job with its PodGroup all the same. What is only a dry run fails.
func TestNoDryRuns(t *testing.T) {
	s := kubetest.New(t)
	for _, path := range []string{jobsPath, groupsPath} {
		s.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("dryRun") != "" {
				kubetest.Write(w, 400, kubetest.Status(400, metav1.StatusReasonBadRequest, noDryRun, nil))
				return
			}
			echo("uid-1")(w, r)
		})
	}
	if _, _, err := submit(t.Context(), s); err != nil || len(creates(s)) != 2 {
		t.Errorf("got %v, %q", err, s.Requests())
	}
	for i, r := range s.Requests() {
		if strings.Contains(s.Body(i), "spec-hash") {
			t.Errorf("%s has a hash", r)
		}
	}
	if _, _, err := submit(t.Context(), s, "--dry-run=server"); err == nil || failure.From(err).Message != "create TFJob research/llama: "+noDryRun || !strings.Contains(failure.From(err).Hint, "sideEffects") {
		t.Errorf("got %v", err)
	}
}
