package history_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/historytest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/history"
)

func build(t *testing.T, s *snapshot.Snapshot) *history.Report {
	t.Helper()
	q := diagnose.Query{Namespace: "team", Name: historytest.Job}
	a, err := diagnose.Explain(context.Background(), s, q, diagnose.Options{NoAdvice: true})
	if err != nil {
		t.Fatal(err)
	}
	w := view.New(s)
	job, err := w.Find(q)
	if err != nil {
		t.Fatal(err)
	}
	return history.Build(w, job, a)
}

// story is a lane as KIND@MINUTES:SECONDS since the job was made, with marks after a bar.
func story(l history.Lane, from time.Time) string {
	var parts []string
	at := func(t time.Time) string { return t.Sub(from).Round(time.Second).String() }
	for _, p := range l.Phases {
		end := "…"
		if p.To != nil {
			end = at(*p.To)
		}
		parts = append(parts, string(p.Kind)+" "+at(p.From)+"-"+end)
	}
	for _, m := range l.Marks {
		parts = append(parts, "| "+string(m.Kind)+" "+at(m.At))
	}
	return strings.Join(parts, ", ")
}

func TestLanes(t *testing.T) {
	r := build(t, historytest.Restarted(4))
	from := *r.Job.Created
	want := []string{
		"absent 0s-1s, pending 1s-40s, starting 40s-1m0s, unready 1m0s-1m5s, running 1m5s-…",
		"absent 0s-1s, pending 1s-40s, starting 40s-1m0s, running 1m0s-45m0s, down 45m0s-45m20s, unready 45m20s-45m30s, running 45m30s-…, | restarted 45m0s",
		"absent 0s-40s, starting 40s-1m0s, running 1m0s-29m0s, absent 29m0s-30m0s, pending 30m0s-30m5s, starting 30m5s-30m20s, unready 30m20s-30m25s, running 30m25s-…, | replaced 29m0s",
		"absent 0s-1s, pending 1s-40s, starting 40s-1m3s, unready 1m3s-1m8s, running 1m8s-…",
	}
	for i, l := range r.Lanes {
		if got := story(l, from); got != want[i] {
			t.Errorf("%s:\n got %s\nwant %s", l.Member, got, want[i])
		}
	}
	if r.Job.Restarts != 3 || r.Lanes[1].Restarts != 2 || r.Lanes[2].Restarts != 1 {
		t.Errorf("%d restarts: %d, %d", r.Job.Restarts, r.Lanes[1].Restarts, r.Lanes[2].Restarts)
	}
	if note := r.Lanes[1].Marks[0].Note; note != "exited with code 137 (OOMKilled); restart 2: of the earlier runs nothing is left" {
		t.Error(note)
	}
	if r.Steps[4].At == nil || r.Steps[5].At != nil || r.Job.State != "Running" || r.Job.GPUs != 8 {
		t.Errorf("got %+v, %+v", r.Steps, r.Job)
	}
}

func TestHowPodsEnd(t *testing.T) {
	const age = 10 * time.Minute
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"failed": {func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, StartedAt: clustertest.Ago(9 * time.Minute), FinishedAt: clustertest.Ago(5 * time.Minute)}}
		}, "running 1m0s-5m0s, | failed 5m0s"},
		"succeeded": {func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodSucceeded
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: clustertest.Ago(9 * time.Minute), FinishedAt: clustertest.Ago(time.Minute)}}
		}, "running 1m0s-9m0s, | succeeded 9m0s"},
		"evicted before it ran": {func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Conditions: []corev1.PodCondition{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: clustertest.Ago(3 * time.Minute)}}}
		}, "| failed 7m0s"},
		"waits to be started again": {func(p *corev1.Pod) {
			s := &p.Status.ContainerStatuses[0]
			s.RestartCount, s.State = 1, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, StartedAt: clustertest.Ago(9 * time.Minute), FinishedAt: clustertest.Ago(8 * time.Minute)}
		}, "running 1m0s-2m0s, down 2m0s-…, | restarted 2m0s"},
		"not ready any more": {func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: clustertest.Ago(2 * time.Minute)})
		}, "running 1m0s-8m0s, unready 8m0s-…"},
		"leaving": {func(p *corev1.Pod) {
			at, grace := clustertest.Ago(30*time.Second), int64(30)
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
		}, "| leaving 9m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clustertest.New().Nodes(1, 8).Add(clustertest.Gang{Name: historytest.Job, Workers: 1, GPUs: 1, Nodes: []string{"n1"}, Age: age, Pod: func(_ int, p *corev1.Pod) {
				p.Status.ContainerStatuses[0].State.Running.StartedAt = clustertest.Ago(9 * time.Minute)
				tt.change(p)
			}}).Done()
			r := build(t, s)
			if got := story(r.Lanes[0], *r.Job.Created); !strings.HasSuffix(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// One message on several pods is one line, with how often and since when.
func TestMessages(t *testing.T) {
	r := build(t, historytest.Pending())
	var got []string
	for _, s := range r.Messages {
		got = append(got, s.From.Format("15:04")+" "+s.To.Format("15:04")+" "+s.Code)
	}
	if diff := cmp.Diff([]string{"13:36 13:39 FailedScheduling", "13:40 13:40 Unschedulable"}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if s := r.Messages[0]; s.Times != 4 || len(s.About) != 4 || s.By != clustertest.Scheduler {
		t.Errorf("got %+v", s)
	}
	if r.Lanes[0].Phases[1].Note == "" || r.Now == nil || r.Job.State != "Pending" {
		t.Errorf("got %+v", r.Lanes[0])
	}
}

func TestNodes(t *testing.T) {
	r := build(t, historytest.Restarted(4))
	var got []string
	for _, n := range r.Nodes {
		for _, d := range n.Devices {
			text := n.Name
			for _, h := range d.Consumers {
				text += " " + h.Member + h.Other + "=" + string(rune('0'+h.Amount))
			}
			got = append(got, text+" free="+string(rune('0'+d.Free))+" sick="+string(rune('0'+d.Unhealthy)))
		}
	}
	want := []string{"n2 worker-0=2 worker-1=2 worker-2=2 worker-3=2 free=0 sick=0", "n1 TFJob team/mistral=4 free=3 sick=1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The report names what may not be seen, what expired and what is not kept.
func TestUnseen(t *testing.T) {
	s := historytest.Restarted(4)
	s.Denied = []snapshot.Denial{{Resource: "nodes"}, {Resource: "pods", ExceptNamespaces: []string{"team"}}}
	s.Nodes = nil
	s.Jobs, s.Pods = nil, slices.DeleteFunc(slices.Clone(s.Pods), func(p *corev1.Pod) bool { return p.Namespace != "team" })
	for i := range s.Pods {
		s.Pods[i].CreationTimestamp = clustertest.Ago(3 * time.Hour)
	}
	for _, u := range s.Custom {
		for _, o := range u {
			if o.GetName() == historytest.Job {
				o.SetCreationTimestamp(clustertest.Ago(3 * time.Hour))
				o.SetAnnotations(nil)
			}
		}
	}
	r := build(t, s)
	for i, want := range []string{"no right to list nodes: the placement map shows no accelerators", "no right to list pods outside of namespace team: who else holds nodes",
		"events before 2026-11-21T13:", "1 run of containers before their last restart", "the command line"} {
		if i >= len(r.Unseen) || !strings.HasPrefix(r.Unseen[i], want) {
			t.Errorf("%d: got %q, want %q", i, r.Unseen, want)
		}
	}
	if len(r.Nodes) == 0 || r.Nodes[0].States != nil || len(r.Nodes[0].Members) != 4 {
		t.Errorf("got %+v", r.Nodes)
	}
}

// A report is passed on: it holds no values of environment variables.
func TestNoSecrets(t *testing.T) {
	text, err := json.Marshal(build(t, historytest.Pending()))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), historytest.Secret) || !strings.Contains(string(text), "TOKEN=") {
		t.Errorf("%s", text)
	}
}
