package stages

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
)

func (c *climb) initContainer(m gang.Member, index int, s corev1.ContainerStatus) *trouble {
	failed := s.State.Terminated
	if failed == nil {
		failed = s.LastTerminationState.Terminated
	}
	switch {
	case failed != nil && failed.ExitCode != 0 && (s.State.Running == nil || s.RestartCount > 1):
		return &trouble{code: answer.InitFailing, verdict: answer.Blocked, who: answer.User, since: failed.FinishedAt.Time,
			message:  fmt.Sprintf("init container %s exits with code %d, %s", s.Name, failed.ExitCode, phrase.Count(s.RestartCount, "restart")),
			details:  nonEmpty(failed.Message, failed.Reason),
			commands: []string{c.kubectl("logs", m.Pod.Name, "-c", s.Name)},
			facts:    map[string]any{"container": s.Name, "exitCode": failed.ExitCode, "restarts": s.RestartCount}}
	case s.State.Running != nil && !s.Ready && index < len(m.Pod.Spec.InitContainers) && m.Pod.Spec.InitContainers[index].RestartPolicy == nil:
		return &trouble{code: answer.InitRunning, verdict: answer.Starting, who: answer.Nobody, since: s.State.Running.StartedAt.Time,
			message:  fmt.Sprintf("init container %s has run for %s", s.Name, phrase.Age(c.w.Age(s.State.Running.StartedAt.Time))),
			commands: []string{c.kubectl("logs", m.Pod.Name, "-c", s.Name, "-f")}}
	case s.State.Waiting != nil:
		return c.waitingContainer(m, s, nil)
	}
	return nil
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

func (c *climb) container(m gang.Member, s corev1.ContainerStatus, events []view.Event) *trouble {
	if s.State.Waiting != nil {
		return c.waitingContainer(m, s, events)
	}
	if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
		return c.crash(m, s, t)
	}
	return nil
}

func (c *climb) waitingContainer(m gang.Member, s corev1.ContainerStatus, events []view.Event) *trouble {
	w := s.State.Waiting
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ErrImageInspect", "RegistryUnavailable":
		t := &trouble{code: answer.ImagePull, verdict: answer.Blocked, who: answer.User,
			message: fmt.Sprintf("image %s of container %s cannot be pulled: %s", s.Image, s.Name, cmp.Or(w.Message, w.Reason)),
			facts:   map[string]any{"image": s.Image, "container": s.Name}, commands: []string{c.kubectl("describe", "pod", m.Pod.Name)}}
		if e := event(events, "Failed"); e != nil {
			t.since, t.details = e.First, nonEmpty(e.Message)
		}
		return t
	case "CreateContainerConfigError":
		return c.configMissing(w.Message, fmt.Sprintf("container %s cannot be made: %s", s.Name, cmp.Or(w.Message, w.Reason)))
	case "CreateContainerError", "RunContainerError", "StartError", "PostStartHookError":
		return &trouble{code: answer.CrashLoop, verdict: answer.Blocked, who: answer.User, facts: map[string]any{"container": s.Name, "restarts": s.RestartCount},
			message:  fmt.Sprintf("container %s cannot be started (%s): %s", s.Name, w.Reason, cmp.Or(w.Message, "no reason was given")),
			commands: []string{c.kubectl("describe", "pod", m.Pod.Name)}}
	case "CrashLoopBackOff":
		return c.crash(m, s, s.LastTerminationState.Terminated)
	}
	return nil
}

// missingObject is how the kubelet names what it did not find, missingKey how it names a part of it.
var (
	missingObject = regexp.MustCompile(`(?i)(secret|configmap) "?(?:[^/"\s]+/)?([^"\s]+?)"? not found`)
	missingKey    = regexp.MustCompile(`(?i)couldn't find key (\S+) in (secret|configmap) (?:[^/\s]+/)?(\S+)`)
)

func (c *climb) configMissing(raw, message string) *trouble {
	t := &trouble{code: answer.ConfigMissing, verdict: answer.Blocked, who: answer.User, message: message}
	if found := missingObject.FindStringSubmatch(raw); found != nil {
		kind, name := strings.ToLower(found[1]), found[2]
		t.message = fmt.Sprintf("%s %q does not exist in namespace %s", kind, name, c.g.Meta.Namespace)
		t.facts = map[string]any{"kind": kind, "name": name}
		create := []string{"create", kind}
		if kind == "secret" {
			create = append(create, "generic")
		}
		t.commands = []string{c.kubectl(append(create, name, "--from-literal=KEY=VALUE")...)}
	}
	if found := missingKey.FindStringSubmatch(raw); found != nil {
		kind, name := strings.ToLower(found[2]), found[3]
		t.message = fmt.Sprintf("%s %q in namespace %s has no key %s", kind, name, c.g.Meta.Namespace, found[1])
		t.facts = map[string]any{"kind": kind, "name": name, "key": found[1]}
		t.commands = []string{c.kubectl("describe", kind, name)}
	}
	return t
}

func (c *climb) crash(m gang.Member, s corev1.ContainerStatus, last *corev1.ContainerStateTerminated) *trouble {
	t := &trouble{code: answer.CrashLoop, verdict: answer.Blocked, who: answer.User, facts: map[string]any{"container": s.Name, "restarts": s.RestartCount},
		message:  fmt.Sprintf("container %s crashes again and again, %s", s.Name, phrase.Count(s.RestartCount, "restart")),
		commands: []string{c.kubectl("logs", m.Pod.Name, "-c", s.Name, "--previous")}}
	if last == nil {
		return t
	}
	t.since = last.FinishedAt.Time
	t.facts["exitCode"] = last.ExitCode
	if last.Reason != "OOMKilled" {
		t.message = fmt.Sprintf("container %s exits with code %d (%s), %s", s.Name, last.ExitCode, cmp.Or(last.Reason, "Error"), phrase.Count(s.RestartCount, "restart"))
		t.details = nonEmpty(last.Message)
		return t
	}
	limit := "its limit"
	for _, container := range m.Pod.Spec.Containers {
		if q, ok := container.Resources.Limits[corev1.ResourceMemory]; ok && container.Name == s.Name {
			limit = "its memory limit of " + q.String()
		}
	}
	t.message = fmt.Sprintf("container %s is out of memory (OOMKilled) at %s, %s", s.Name, limit, phrase.Count(s.RestartCount, "restart"))
	t.details = []string{"last killed " + phrase.Age(c.w.Age(last.FinishedAt.Time)) + " ago; the logs before it show how far it came"}
	return t
}

// pulling: nothing is wrong yet; the image is on its way, or the kubelet has not begun.
func (c *climb) pulling(m gang.Member, events []view.Event) *trouble {
	pull, done := event(events, "Pulling"), event(events, "Pulled", "Started")
	if pull != nil && (done == nil || done.Last.Before(pull.Last)) {
		image := strings.Trim(strings.TrimPrefix(pull.Message, "Pulling image "), `"`)
		return &trouble{code: answer.ImagePulling, verdict: answer.Starting, who: answer.Nobody, since: pull.Last,
			message: fmt.Sprintf("image %s has been pulled for %s", image, phrase.Age(c.w.Age(pull.Last))), facts: map[string]any{"image": image}}
	}
	at := m.Pod.CreationTimestamp.Time
	if m.Pod.Status.StartTime != nil {
		at = m.Pod.Status.StartTime.Time
	}
	return &trouble{code: answer.ContainersStarting, verdict: answer.Starting, who: answer.Nobody, since: at,
		message: fmt.Sprintf("containers are being started, for %s", phrase.Age(c.w.Age(at)))}
}
