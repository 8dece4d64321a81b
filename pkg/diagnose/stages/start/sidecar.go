package start

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// sidecarGrace is how long containers next to the one that does the work may take to notice that it has ended.
const sidecarGrace = time.Minute

// outlived finds that the container which does the work has ended well, and others keep the pod from ending; nil if it is not so.
func outlived(c *stage.Context, m gang.Member) *stage.Finding {
	done, others := outlives(c, m)
	if done == nil {
		return nil
	}
	at := done.State.Terminated.FinishedAt.Time
	f := stage.Found(answer.SidecarKeepsPod, "container %s has ended well, %s ago, and %s %s on: the pod does not end, and the job cannot complete", done.Name, phrase.Age(c.View.Age(at)),
		phrase.Names(others), phrase.Verb(len(others), "runs", "run")).SinceTime(at).Fact("container", done.Name).Fact("sidecars", others).
		Run(c.Kubectl("logs", m.Pod.Name, "-c", others[0]))
	if c.View.Age(at) < sidecarGrace {
		return f.As(answer.Waiting, answer.Nobody)
	}
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("end %s, which %s the pod", phrase.Names(others), phrase.Verb(len(others), "keeps", "keep")), Change: map[string]any{"containers": others},
			How: "as it lets itself be ended; the next time have it as an init container with restartPolicy: Always, which ends with the pod"},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return completed(c, s) },
	})
}

// outlives is the container of a member that does the work, if it has ended well, and the names of those that still run; nil if it is not so. A pod that is restarted
// whatever happens runs it once more.
func outlives(c *stage.Context, m gang.Member) (done *corev1.ContainerStatus, others []string) {
	role := c.Gang.RoleByName(m.Role)
	if role == nil || m.Pod == nil || m.Pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return nil, nil
	}
	for i, s := range m.Pod.Status.ContainerStatuses {
		switch {
		case s.Name == role.Main && s.State.Terminated != nil && s.State.Terminated.ExitCode == 0:
			done = &m.Pod.Status.ContainerStatuses[i]
		case s.State.Running != nil:
			others = append(others, s.Name)
		}
	}
	if len(others) == 0 {
		return nil, nil
	}
	return done, others
}

// completed is the cluster when the pods of all such members have ended.
func completed(c *stage.Context, s *snapshot.Snapshot) *snapshot.Snapshot {
	var kept, ended []*corev1.Pod
	for _, m := range c.Gang.Members {
		if done, _ := outlives(c, m); done != nil {
			pod := m.Pod.DeepCopy()
			pod.Status.Phase = corev1.PodSucceeded
			kept, ended = append(kept, m.Pod), append(ended, pod)
		}
	}
	return whatif.Come(whatif.Gone(s, kept), ended)
}
