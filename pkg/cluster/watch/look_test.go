package watch

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
)

// Where the first list, which is streamed as a watch, does not arrive, it is read as a list.
func TestStreamedListDoesNotArrive(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s := kubetest.New(t)
	lists := func(list any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("watch") != "" {
				<-r.Context().Done()
				return
			}
			kubetest.Write(w, 200, list)
		}
	}
	s.HandleFunc("GET "+jobsPath, lists(kubetest.JobList("", kubetest.Job("research", "llama", 1))))
	s.HandleFunc("GET "+podsPath, lists(kubetest.PodList(kubetest.Pod("research", "llama", 0, "n1", ""))))
	var seen Snapshot
	err := follower(t, s, func(err error) { t.Errorf("reported as trouble: %v", err) }).Run(ctx, func(s Snapshot) (bool, error) { seen = s; return true, nil })
	if err != nil || seen.Job == nil || len(seen.Pods) != 1 {
		t.Errorf("got %v, saw %+v", err, seen)
	}
}

// Watches that bring nothing are replaced by lists, which is reported once; watches that only have nothing to bring are not.
func TestSilentWatches(t *testing.T) {
	for name, silent := range map[string]bool{"silent": true, "nothing happens": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				c := newCluster(t)
				c.pod("0", "n1", corev1.PodRunning, "")
				quiet := func(clienttesting.Action) (bool, watch.Interface, error) { return true, watch.NewFake(), nil }
				c.typed.PrependWatchReactor("*", quiet)
				c.dyn.PrependWatchReactor("*", quiet)
				job, err := jobs.Read(mustUnstructured(t, c.job))
				if err != nil {
					t.Fatal(err)
				}
				var trouble []string
				f := &Follower{Client: c.client(), Job: job, Trouble: func(err error) { trouble = append(trouble, failure.From(err).Message) }}
				var seen []int
				err = f.Run(ctx, func(s Snapshot) (bool, error) {
					seen = append(seen, len(s.Pods))
					if len(seen) == 1 && silent {
						c.pod("1", "n2", corev1.PodRunning, "")
					}
					return len(s.Pods) == 2, nil
				})
				if !silent {
					if err != context.DeadlineExceeded || len(trouble) > 0 || len(seen) > 3 { // the job, the pod, and that both are in
						t.Errorf("got %v, saw %v pods, reported %q", err, seen, trouble)
					}
					return
				}
				if err != nil || len(trouble) != 1 || !strings.HasPrefix(trouble[0], "watch TFJob research/llama: nothing arrives") {
					t.Errorf("got %v, saw %v pods, reported %q", err, seen, trouble)
				}
			})
		})
	}
}
