package bench

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
	"github.com/gangctl/gangctl/test/terminal"
)

// subjectArgs are the query of why the subject waits.
var subjectArgs = []string{"why-pending", "job", subjectName, "-n", subjectNamespace}

// measured is a command that is measured; an exit code below least means that it did not do what it should.
type measured struct {
	name  string
	args  []string
	least int
}

// commands are those that read a whole cluster, and for comparison two that do not: one answer that the scheduler has published, and the
// start of the program alone.
func commands() []measured {
	with := func(more string) []string { return append(append([]string(nil), subjectArgs...), more) }
	return []measured{
		{"version", []string{"version"}, 0},
		{"published", with("--source=scheduler"), 3},
		{"why-pending", with("--source=cluster"), 3},
		{"why-pending-all", []string{"why-pending", "-A"}, 3},
		{"top-job", []string{"top", "job", "-A"}, 0},
		{"top-node", []string{"top", "node"}, 0},
		{"list", []string{"list", "-A"}, 0},
	}
}

// BenchmarkCommands runs an installed copy of gangctl against a server without a control plane that has 5,000 nodes and 50,000 pods:
// what a command costs itself, without what an API server takes. KB-wire is what the server wrote.
//
//	GANGCTL_BIN=$PWD/bin/gangctl go test ./test/bench -run '^$' -bench Commands -benchtime 3x
func BenchmarkCommands(b *testing.B) {
	program := installed(b)
	s := serve(b, pods(b))
	s.publish(b, program)
	for _, c := range commands() {
		b.Run(c.name, func(b *testing.B) {
			before := s.sent.Load()
			repeat(b, s.kubeconfig, c.least, append([]string{program}, c.args...)...)
			b.ReportMetric(float64(s.sent.Load()-before)/float64(b.N)/1000, "KB-wire")
		})
	}
	for _, what := range []string{"job", "node"} {
		args := []string{program, "top", what, "--watch"}
		if what == "job" {
			args = append(args, "-A")
		}
		b.Run("top-"+what+"-watch", func(b *testing.B) { watchFor(b, s.kubeconfig, args...) })
	}
}

// watchedFor is how long a watch is watched, once it has drawn its first frame and had the time to calm down. It draws the next one
// after 24 times as long as one takes to make.
const (
	calmAfter  = 5 * time.Second
	watchedFor = 60 * time.Second
)

// watchFor has a watch run on a terminal, and reports which part of a core it takes, and the most memory that it had.
func watchFor(b *testing.B, kubeconfig string, command ...string) {
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "TERM=xterm-256color")
		t, err := terminal.Start(cmd, 120, 50)
		if err != nil {
			b.Skip(err)
		}
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		_, err = t.WaitFor(ctx, func(s *terminal.Screen) bool { return strings.Contains(s.String(), "gangctl top") })
		cancel()
		if err != nil {
			b.Fatal(err)
		}
		time.Sleep(calmAfter)
		before, begin := processTime(b, cmd.Process.Pid), time.Now()
		time.Sleep(watchedFor)
		used, took := processTime(b, cmd.Process.Pid)-before, time.Since(begin)
		peak, err := residentPeak(cmd.Process.Pid)
		if err != nil {
			b.Fatal(err)
		}
		if err := t.Type("q"); err != nil {
			b.Fatal(err)
		}
		_ = t.Stop() // how it ended is not what is measured
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(100*used.Seconds()/took.Seconds(), "%-of-a-core")
		b.ReportMetric(float64(peak)/1e6, "MB-resident")
	}
}

// publication is what a scheduler publishes of an answer, as the command itself gives it now: the event, its key and its lease.
func publication(b *testing.B, program, kubeconfig string, signer ed25519.PrivateKey) (*corev1.Event, *corev1.ConfigMap, *coordinationv1.Lease) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), program, append(append([]string(nil), subjectArgs...), "--source=cluster", "-o", "json")...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := cmd.Output()
	var a answer.Answer
	if parsed := json.Unmarshal(out, &a); parsed != nil {
		b.Fatalf("%v: %v, %v", cmd.Args, err, parsed)
	}
	now := time.Now()
	a.Snapshot.At = &now
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: subjectNamespace, Name: published.EventName(types.UID(a.Job.UID))},
		InvolvedObject: corev1.ObjectReference{Namespace: subjectNamespace, Kind: a.Job.Kind, Name: a.Job.Name}}
	if err := published.Put(event, &a, signer); err != nil {
		b.Fatal(err)
	}
	key := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: schedulerNamespace, Name: published.KeyName},
		Data: map[string]string{published.PublicKeyField: published.EncodePublicKey(signer.Public().(ed25519.PublicKey))}}
	renewed, lasts, holder := metav1.NewMicroTime(now), int32(3600), "bench"
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: schedulerNamespace, Name: "gang-scheduler"},
		Spec: coordinationv1.LeaseSpec{RenewTime: &renewed, LeaseDurationSeconds: &lasts, HolderIdentity: &holder}}
	return event, key, lease
}

// schedulerNamespace is where the scheduler is installed.
const schedulerNamespace = "gangctl-system"

// publish serves an answer of a scheduler about the subject.
func (s *served) publish(b *testing.B, program string) {
	b.Helper()
	event, key, lease := publication(b, program, s.kubeconfig, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	event.APIVersion, event.Kind, key.APIVersion, key.Kind = "v1", "Event", "v1", "ConfigMap"
	lease.APIVersion, lease.Kind = "coordination.k8s.io/v1", "Lease"
	s.answer("/apis/kubeflow.org/v1/namespaces/"+subjectNamespace+"/tfjobs/"+subjectName, s.subject.Object)
	s.answer("/api/v1/namespaces/"+subjectNamespace+"/events/"+event.Name, event)
	s.answer("/api/v1/namespaces/"+schedulerNamespace+"/configmaps/"+key.Name, key)
	s.answer("/apis/coordination.k8s.io/v1/namespaces/"+schedulerNamespace+"/leases/"+lease.Name, lease)
}

// publishTo writes an answer of a scheduler about the subject to a cluster.
func publishTo(b *testing.B, program, kubeconfig string) {
	b.Helper()
	event, key, lease := publication(b, program, kubeconfig, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	c := newLoader(b, kubeconfig).typed
	_, err := c.CoreV1().Namespaces().Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: schedulerNamespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		b.Fatal(err)
	}
	gone := func(err error) {
		if err != nil && !apierrors.IsNotFound(err) {
			b.Fatal(err)
		}
	}
	now := metav1.DeleteOptions{}
	gone(c.CoreV1().Events(event.Namespace).Delete(b.Context(), event.Name, now))
	gone(c.CoreV1().ConfigMaps(key.Namespace).Delete(b.Context(), key.Name, now))
	gone(c.CoordinationV1().Leases(lease.Namespace).Delete(b.Context(), lease.Name, now))
	_, err = c.CoreV1().Events(event.Namespace).Create(b.Context(), event, metav1.CreateOptions{})
	if err == nil {
		_, err = c.CoreV1().ConfigMaps(key.Namespace).Create(b.Context(), key, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = c.CoordinationV1().Leases(lease.Namespace).Create(b.Context(), lease, metav1.CreateOptions{})
	}
	if err != nil {
		b.Fatal(err)
	}
}
