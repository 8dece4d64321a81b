package watch

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/internal/kubetest"
)

// history is an API server whose watches end: the first with an expired version, once the first list has been seen, the second in the
// middle of the stream. Each list shows one more pod than the one before.
type history struct {
	lists, watches atomic.Int32
	seen           chan struct{}
}

func (h *history) pods(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("watch") == "" {
		var pods []*corev1.Pod
		for i := range h.lists.Add(1) {
			pods = append(pods, kubetest.Pod("research", "llama", int(i), "n1", ""))
		}
		list := kubetest.PodList(pods...)
		list.ResourceVersion = strconv.Itoa(int(h.lists.Load()))
		kubetest.Write(w, 200, list)
		return
	}
	if r.FormValue("sendInitialEvents") != "" { // a server without streaming lists
		kubetest.Write(w, 422, kubetest.Status(422, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden", nil))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch h.watches.Add(1) {
	case 1:
		select {
		case <-h.seen:
		case <-r.Context().Done():
			return
		}
		expired, err := json.Marshal(kubetest.Status(410, metav1.StatusReasonExpired, "too old", nil))
		if err != nil {
			panic(err)
		}
		event := metav1.WatchEvent{Type: "ERROR", Object: runtime.RawExtension{Raw: expired}}
		if err := json.NewEncoder(w).Encode(event); err != nil {
			panic(err)
		}
	case 2:
		panic(http.ErrAbortHandler)
	default:
		<-r.Context().Done()
	}
}

func (h *history) job(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.FormValue("sendInitialEvents") != "":
		kubetest.Write(w, 422, kubetest.Status(422, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden", nil))
	case r.FormValue("watch") != "":
		<-r.Context().Done()
	default:
		kubetest.Write(w, 200, kubetest.JobList("", kubetest.Job("research", "llama", 2)))
	}
}

// A watch that expires is mended by a new list, and nothing that happened in between is lost.
func TestSurvivesExpiry(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, h := kubetest.New(t), &history{seen: make(chan struct{})}
	s.HandleFunc("GET "+podsPath, h.pods)
	s.HandleFunc("GET "+jobsPath, h.job)
	var seen []int
	err := follower(t, s, func(error) {}).Run(ctx, func(s Snapshot) (bool, error) {
		if seen = append(seen, len(s.Pods)); len(seen) == 1 {
			close(h.seen)
		}
		return s.Job != nil && len(s.Pods) == 2, nil
	})
	if err != nil || seen[0] != 1 {
		t.Errorf("got %v, saw %v pods after %d lists and %d watches", err, seen, h.lists.Load(), h.watches.Load())
	}
}
