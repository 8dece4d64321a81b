package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/internal/prerequisite"
	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/sandbox/demo"
	"github.com/gangctl/gangctl/sandbox/members"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// crunch is a Job of Kubernetes itself that requests nodes of a class that does not exist.
const crunch = `
apiVersion: batch/v1
kind: Job
metadata: {name: crunch, namespace: default}
spec:
  parallelism: 2
  completions: 2
  template:
    spec:
      schedulerName: gang-scheduler
      restartPolicy: Never
      nodeSelector: {example.com/class: h1oo}
      containers:
      - {name: main, image: x, resources: {requests: {cpu: "1", nvidia.com/gpu: "1"}, limits: {nvidia.com/gpu: "1"}}}
`

// service holds one device of a node indefinitely; its replacement may go anywhere.
const service = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: default}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      schedulerName: gang-scheduler
      containers:
      - {name: main, image: x, resources: {limits: {nvidia.com/gpu: "1"}}}
`

// TestAdviceForOthers pastes advice that needs more of a cluster than a patch: a Job whose template is immutable is made
// again, an operator makes other members, and a pod of a service is evicted and finds another place.
func TestAdviceForOthers(t *testing.T) {
	t.Parallel()
	prerequisite.Program(t, "kubectl") // advice is given as kubectl commands
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	must(t, stage.AddNodes(t.Context(), 2, 2))
	t.Run("a Job is made again", func(t *testing.T) {
		paste(t, stage, "kubectl apply -f - <<'E'"+crunch+"E")
		pods(t, stage, "job-name=crunch", 2, corev1.PodPending)
		paste(t, stage, commandOf(t, stage, "crunch", "relax", "fix"))
		pods(t, stage, "job-name=crunch", 2, corev1.PodRunning)
		paste(t, stage, "kubectl delete job crunch\nkubectl wait --for=delete pods -l job-name=crunch --timeout=60s")
	})
	t.Run("a job is split", func(t *testing.T) {
		must(t, stage.Submit(t.Context(), "wide", "--workers", "1", "--gpus", "4"))
		_, err := stage.Decided(t.Context(), 1)
		must(t, err)
		paste(t, stage, commandOf(t, stage, "wide", "reshape"))
		if _, err := stage.WaitFor(t.Context(), func(s members.List) bool { return len(s) == 2 && s.Count(members.Running) == 2 }); err != nil {
			t.Errorf("the gang does not start: %v", err)
		}
		must(t, stage.Delete(t.Context(), "wide"))
	})
	t.Run("a pod moves", func(t *testing.T) {
		for name, other := range map[string]string{"web": "node-2", "db": "node-1"} {
			paste(t, stage, "kubectl cordon "+other+"\nkubectl apply -f - <<'E'"+strings.ReplaceAll(service, "NAME", name)+"E")
			pods(t, stage, "app="+name, 1, corev1.PodRunning)
			paste(t, stage, "kubectl uncordon "+other)
		}
		must(t, stage.Submit(t.Context(), "whole", "--workers", "1", "--gpus", "2"))
		_, err := stage.Decided(t.Context(), 1)
		must(t, err)
		paste(t, stage, commandOf(t, stage, "whole", "move"))
		if _, err := stage.WaitFor(t.Context(), func(s members.List) bool { return len(s) == 1 && s.Count(members.Running) == 1 }); err != nil {
			t.Errorf("the gang does not start: %v", err)
		}
		pods(t, stage, "app in (web,db)", 2, corev1.PodRunning)
	})
}

// paste runs commands in a shell, as they are.
func paste(t *testing.T, stage *demo.Stage, commands string) {
	t.Helper()
	t.Logf("$ %s", commands)
	shell := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", commands)
	shell.Env = append(os.Environ(), "KUBECONFIG="+stage.Kubeconfig())
	out, err := shell.CombinedOutput()
	t.Logf("%s", out)
	must(t, err)
}

// commandOf is the command of the first action of one of the kinds.
func commandOf(t *testing.T, stage *demo.Stage, name string, kinds ...string) string {
	t.Helper()
	out, _, _ := gangctl(t, stage, "why-pending", name, "-o", "json")
	var a answer
	must(t, json.Unmarshal([]byte(out), &a))
	for _, action := range a.Unblock {
		if slices.Contains(kinds, action.Kind) && action.Verified && action.Command != "" {
			return action.Command
		}
	}
	t.Fatalf("no command for %s", strings.Join(kinds, " or "))
	return ""
}

// pods waits for pods of a label to be so many, all in one phase, and seen by their scheduler.
func pods(t *testing.T, stage *demo.Stage, selector string, n int, phase corev1.PodPhase) {
	t.Helper()
	sandboxtest.Eventually(t, stepTimeout, func() error {
		list, err := stage.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		return unlessAll(list.Items, n, phase)
	})
}

func unlessAll(list []corev1.Pod, n int, phase corev1.PodPhase) error {
	there := 0
	for _, p := range list {
		looked := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
		if p.DeletionTimestamp == nil && p.Status.Phase == phase && looked {
			there++
		}
	}
	if there != n {
		return fmt.Errorf("%d of %d pods are %s", there, n, phase)
	}
	return nil
}
