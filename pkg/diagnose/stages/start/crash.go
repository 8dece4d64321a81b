package start

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// oomKilled is the reason of the end of a container that used more memory than its limit.
const oomKilled = "OOMKilled"

// crash finds that a container has ended badly, perhaps again and again. Its log is that of the run before this one only where the container is to run once more.
func crash(c *stage.Context, m gang.Member, s corev1.ContainerStatus, events []view.Event) *stage.Finding {
	restarts, last, log := phrase.Count(s.RestartCount, "restart"), s.State.Terminated, []string{"logs", m.Pod.Name, "-c", s.Name}
	if last == nil && s.LastTerminationState.Terminated != nil {
		last, log = s.LastTerminationState.Terminated, append(log, "--previous")
	}
	f := stage.Found(answer.CrashLoop, "container %s crashes again and again, %s", s.Name, restarts).
		Fact("container", s.Name).Fact("restarts", s.RestartCount).Run(c.Kubectl(log...))
	if last == nil {
		return f
	}
	f.SinceTime(last.FinishedAt.Time).Fact("exitCode", last.ExitCode).Fact("reason", last.Reason)
	if r := s.State.Running; r != nil {
		f.Detail("it is up again for %s; the last run took %s", phrase.Age(c.View.Age(r.StartedAt.Time)), phrase.Age(last.FinishedAt.Sub(last.StartedAt.Time)))
	}
	switch {
	case last.Reason == oomKilled:
		f.Message = fmt.Sprintf("container %s is out of memory (%s) at %s, %s", s.Name, oomKilled, memoryLimit(m.Pod, s.Name), restarts)
		return f.Detail("last killed %s ago; the logs before it show how far it came", phrase.Age(c.View.Age(last.FinishedAt.Time)))
	case last.ExitCode == 0 && m.Pod.Spec.RestartPolicy == corev1.RestartPolicyAlways:
		f.Message = fmt.Sprintf("container %s ends well (exit code 0) and is started again, %s: its restartPolicy is Always", s.Name, restarts)
		return f.Detail("set the restartPolicy of the role to OnFailure or Never, if it is to end")
	}
	meaning := cmp.Or(last.Reason, "Error")
	if meaning == "Error" {
		meaning = cmp.Or(phrase.ExitCode(last.ExitCode), meaning)
	}
	f.Message = fmt.Sprintf("container %s exits with code %d (%s), %s", s.Name, last.ExitCode, meaning, restarts)
	details(probed(f, s.Name, last, events), last.Message)
	if last.Reason == "StartError" || last.Reason == "ContainerCannotRun" {
		return ofNode(c, m, f)
	}
	return f
}

// memoryLimit names the limit of a container in a sentence.
func memoryLimit(pod *corev1.Pod, name string) string {
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if q, ok := container.Resources.Limits[corev1.ResourceMemory]; ok && container.Name == name {
			return "its memory limit of " + q.String()
		}
	}
	return "its limit"
}

// probed adds that a container was killed for a probe that failed, if its last run was.
func probed(f *stage.Finding, container string, last *corev1.ContainerStateTerminated, events []view.Event) *stage.Finding {
	for i := range events {
		e := &events[i]
		for _, probe := range []string{"startup", "liveness"} {
			if e.Reason != "Killing" || e.Last.Before(last.StartedAt.Time) || !strings.Contains(e.Message, fmt.Sprintf("ontainer %s failed %s probe", container, probe)) {
				continue
			}
			f.Message += fmt.Sprintf(": its %s probe fails, and the kubelet restarts it", probe)
			f.Fact("probe", probe)
			for _, failed := range events {
				if failed.Reason == "Unhealthy" && strings.HasPrefix(strings.ToLower(failed.Message), probe+" probe") {
					return details(f, failed.Message)
				}
			}
			return f
		}
	}
	return f
}
