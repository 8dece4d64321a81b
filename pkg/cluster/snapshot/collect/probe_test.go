package collect

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// rehearsed is what a rehearsal of a job with one role learns from a server whose answer to pods is given.
func rehearsed(t *testing.T, s *kubetest.Server, limit time.Duration, pods http.HandlerFunc) *snapshot.Snapshot {
	t.Helper()
	s.Answer(jobsOfTeam, 201, job()[0].Object)
	s.HandleFunc(podsOfTeam, pods)
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	submitted := job()[0]
	roles := submitted.Object["spec"].(map[string]any)["tfReplicaSpecs"].(map[string]any)
	delete(roles, "PS")
	snap := &snapshot.Snapshot{}
	p := newProber(client, snap)
	p.limit, p.pause = limit, time.Millisecond
	if _, err := p.rehearse(t.Context(), []Object{submitted}); err != nil {
		t.Fatal(err)
	}
	return snap
}

// What a server, a proxy or a connection that fails answers shows nothing of a pod: it is neither refused nor accepted, and the gap is kept.
func TestProbeUnanswered(t *testing.T) {
	status := func(code int, reason metav1.StatusReason, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			kubetest.Write(w, code, kubetest.Status(code, reason, message, nil))
		}
	}
	page := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(code)
			io.WriteString(w, "<html>sign in</html>") //nolint:errcheck
		}
	}
	for name, pods := range map[string]http.HandlerFunc{
		"503":                      status(503, metav1.StatusReasonServiceUnavailable, "apiserver is shutting down"),
		"500":                      status(500, metav1.StatusReasonInternalError, "etcdserver: leader changed"),
		"429":                      status(429, metav1.StatusReasonTooManyRequests, "too many requests"),
		"504":                      status(504, metav1.StatusReasonTimeout, "request did not complete"),
		"401":                      status(401, metav1.StatusReasonUnauthorized, "Unauthorized"),
		"413":                      status(413, metav1.StatusReasonRequestEntityTooLarge, "too large"),
		"the conflict of a quota":  status(409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on resourcequotas "q": the object has been modified`),
		"no dry runs":              status(400, metav1.StatusReasonBadRequest, `admission webhook "w" does not support dry run`),
		"a page":                   page(200),
		"a page that is forbidden": page(403),
		"a lost connection":        func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t)
			snap := rehearsed(t, s, probeLimit, pods)
			if len(snap.Probes) != 1 || len(snap.Unanswered) != 1 || snap.Unanswered[0].Name != "j-worker-0" || !strings.HasPrefix(snap.Unanswered[0].Message, "create Pod team/j-worker-0: ") {
				t.Errorf("answers %+v, unanswered %+v", snap.Probes, snap.Unanswered)
			}
			tried := 0
			for _, r := range s.Requests() {
				if strings.HasPrefix(r, podsOfTeam) {
					tried++
				}
			}
			if name == "401" || name == "no dry runs" { // which do not pass
				tried += probeTries - 1
			}
			if tried < probeTries {
				t.Errorf("tried %d times", tried)
			}
		})
	}
}

// A pod whose create is not answered is not waited for indefinitely.
func TestProbeHangs(t *testing.T) {
	snap := rehearsed(t, kubetest.New(t), 200*time.Millisecond, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if len(snap.Unanswered) != 1 || !strings.Contains(snap.Unanswered[0].Message, "no answer from the API server") {
		t.Errorf("unanswered %+v", snap.Unanswered)
	}
}

// Admission refuses with any status, and one hiccup hides no refusal.
func TestProbeRefused(t *testing.T) {
	for name, refused := range map[string]*metav1.Status{
		"a webhook's own status": kubetest.Status(409, metav1.StatusReasonConflict, `admission webhook "w.example.com" denied the request: no team label`, nil),
		"a webhook that is down": kubetest.Status(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "w.example.com": no endpoints available`, nil),
		"a policy":               kubetest.Status(413, metav1.StatusReasonRequestEntityTooLarge, `pods "j-worker-0" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too large`, nil),
		"a quota":                kubetest.Status(403, metav1.StatusReasonForbidden, `pods "j-worker-0" is forbidden: exceeded quota: q`, nil),
		"validation":             kubetest.Status(422, metav1.StatusReasonInvalid, `Pod "j-worker-0" is invalid: spec: Required value`, nil),
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			snap := rehearsed(t, kubetest.New(t), probeLimit, func(w http.ResponseWriter, _ *http.Request) {
				if n++; n == 1 {
					kubetest.Write(w, 503, kubetest.Status(503, metav1.StatusReasonServiceUnavailable, "apiserver is shutting down", nil))
					return
				}
				kubetest.Write(w, int(refused.Code), refused)
			})
			if len(snap.Unanswered) != 0 || len(snap.Probes) != 2 || snap.Probes[1].Message != refused.Message {
				t.Errorf("answers %+v, unanswered %+v", snap.Probes, snap.Unanswered)
			}
		})
	}
}
