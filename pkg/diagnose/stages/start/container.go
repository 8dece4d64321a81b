package start

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
)

// initContainer finds what keeps an init container from ending; nil if nothing does.
func initContainer(c *stage.Context, m gang.Member, index int, s corev1.ContainerStatus, events []view.Event) *stage.Finding {
	if running := s.State.Running != nil && (s.Ready || s.Started != nil && *s.Started); running && component.Sidecar(m.Pod, index) {
		return nil // it has recovered, whatever it did before
	}
	failed := s.State.Terminated
	if failed == nil {
		failed = s.LastTerminationState.Terminated
	}
	switch {
	case failed != nil && failed.ExitCode != 0 && (s.State.Running == nil || s.RestartCount > 1):
		code := fmt.Sprintf("code %d", failed.ExitCode)
		if meaning := phrase.ExitCode(failed.ExitCode); meaning != "" {
			code += " (" + meaning + ")"
		}
		f := stage.Found(answer.InitFailing, "init container %s exits with %s, %s", s.Name, code, phrase.Count(s.RestartCount, "restart"))
		if failed.Reason == oomKilled {
			f.Message = fmt.Sprintf("init container %s is out of memory (%s) at %s, %s", s.Name, oomKilled, memoryLimit(m.Pod, s.Name), phrase.Count(s.RestartCount, "restart"))
		}
		injected(c, m, f, s.Name, failed.Reason)
		return details(probed(f, s.Name, failed, events), failed.Message, strings.TrimPrefix(failed.Reason, "Error")).SinceTime(failed.FinishedAt.Time).
			Fact("container", s.Name).Fact("exitCode", failed.ExitCode).Fact("restarts", s.RestartCount).
			Run(c.Kubectl("logs", m.Pod.Name, "-c", s.Name))
	case s.State.Running != nil && !s.Ready && !component.Sidecar(m.Pod, index):
		at := s.State.Running.StartedAt.Time
		f := stage.Found(answer.InitRunning, "init container %s has run for %s", s.Name, phrase.Age(c.View.Age(at))).SinceTime(at).Fact("container", s.Name).
			Run(c.Kubectl("logs", m.Pod.Name, "-c", s.Name, "-f"))
		if c.View.Age(at) > initWithin {
			f.As(answer.Uncertain, answer.Nobody).Detail("whether it ends by itself cannot be determined: one that waits for what does not come runs on, as one does that fetches much; its log may show which")
		}
		return f
	case s.State.Waiting != nil:
		return waitingContainer(c, m, s, events)
	}
	return nil
}

// templateLacks reports whether a container of a member is none of the job's: its operator, or a webhook, puts it into the pods.
func templateLacks(c *stage.Context, m gang.Member, name string) bool {
	role := c.Gang.RoleByName(m.Role)
	if role == nil || len(role.Template.Spec.Containers) == 0 {
		return false
	}
	of := func(container corev1.Container) bool { return container.Name == name }
	return !slices.ContainsFunc(role.Template.Spec.InitContainers, of) && !slices.ContainsFunc(role.Template.Spec.Containers, of)
}

// injected adds to the finding that an init container fails that the job does not have it: where it lacks memory, that is none that the job gives.
func injected(c *stage.Context, m gang.Member, f *stage.Finding, name, reason string) {
	if !templateLacks(c, m, name) {
		return
	}
	f.Detail("%s is not in the job: its operator, or a webhook, puts it into the pods", name)
	if reason != oomKilled {
		return
	}
	f.As(answer.Blocked, answer.Admin)
	if c.Gang.Kind.Group == ray.Group && name == ray.WaitGCS {
		f.Detail("KubeRay fixes what it may use; with ENABLE_INIT_CONTAINER_INJECTION=false in its environment it leaves it out, and the workers need one of their own then")
	}
}

// initWithin is how long an init container may run before it is not expected to end by itself.
const initWithin = 30 * time.Minute

// details adds the texts that are not empty, a line each.
func details(f *stage.Finding, texts ...string) *stage.Finding {
	for _, text := range texts {
		if text != "" {
			f.Detail("%s", text)
		}
	}
	return f
}

// container finds what keeps a container from running; nil if nothing does.
func container(c *stage.Context, m gang.Member, s corev1.ContainerStatus, events []view.Event) *stage.Finding {
	if s.State.Waiting != nil {
		return waitingContainer(c, m, s, events)
	}
	if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
		return crash(c, m, s, events)
	}
	if gang.CrashLoops(s, c.View.Now) {
		return crash(c, m, s, events)
	}
	return nil
}

// waitingContainer finds why the kubelet does not start a container; nil if it is about to.
func waitingContainer(c *stage.Context, m gang.Member, s corev1.ContainerStatus, events []view.Event) *stage.Finding {
	w := s.State.Waiting
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ErrImageInspect", "RegistryUnavailable":
		return imagePull(c, m, s, events)
	case "CreateContainerConfigError":
		switch {
		case missingObject.MatchString(w.Message) || missingKey.MatchString(w.Message):
			return configMissing(c, w.Message, w.Message)
		case strings.Contains(w.Message, "subPath"):
			return ofNode(c, m, stage.Found(answer.VolumeMount, "container %s cannot be made: %s", s.Name, w.Message).Fact("container", s.Name).Run(c.Kubectl("describe", "pod", m.Pod.Name)))
		}
		return notStarted(c, m, s)
	case "CreateContainerError", "RunContainerError", "StartError", "PostStartHookError":
		return notStarted(c, m, s)
	case "CrashLoopBackOff":
		return crash(c, m, s, events)
	}
	return nil
}

// notStarted finds that the kubelet cannot make or start a container.
func notStarted(c *stage.Context, m gang.Member, s corev1.ContainerStatus) *stage.Finding {
	w := s.State.Waiting
	return ofNode(c, m, stage.Found(answer.CrashLoop, "container %s cannot be started (%s): %s", s.Name, w.Reason, cmp.Or(w.Message, "no reason was given")).
		Fact("container", s.Name).Fact("restarts", s.RestartCount).Run(c.Kubectl("describe", "pod", m.Pod.Name)))
}

// missingObject is how the kubelet names what it did not find, missingKey how it names a part of it.
var (
	missingObject = regexp.MustCompile(`(?i)(secret|configmap) "?(?:[^/"\s]+/)?([^"\s]+?)"? not found`)
	missingKey    = regexp.MustCompile(`(?i)couldn't find key (\S+) in (secret|configmap) (?:[^/\s]+/)?(\S+)`)
)

// configMissing finds that a Secret or ConfigMap is missing, by what the kubelet reports; message stands for a report that cannot be
// read.
func configMissing(c *stage.Context, report, message string) *stage.Finding {
	f := stage.Found(answer.ConfigMissing, "%s", message)
	if key := missingKey.FindStringSubmatch(report); key != nil {
		kind, name := strings.ToLower(key[2]), key[3]
		f.Message = fmt.Sprintf("%s %q in namespace %s has no key %s", kind, name, c.Gang.Meta.Namespace, key[1])
		return f.Fact("kind", kind).Fact("name", name).Fact("key", key[1]).Run(c.Kubectl("describe", kind, name))
	}
	object := missingObject.FindStringSubmatch(report)
	if object == nil {
		return f
	}
	kind, name := strings.ToLower(object[1]), object[2]
	f.Message = fmt.Sprintf("%s %q does not exist in namespace %s", kind, name, c.Gang.Meta.Namespace)
	f.Fact("kind", kind).Fact("name", name)
	if m := c.Gang.Maker; kind == "configmap" && m != nil && invented(c, name) { // secrets are users' as a rule
		return f.Detail("%s, which these pods are of, does not name it: its operator may make it, right after the pods, and was kept from it; then they have to be made again", m).Run(c.Kubectl("describe", m.Ref()))
	}
	create := []string{"create", kind}
	if kind == "secret" {
		create = append(create, "generic")
	}
	return f.Run(c.Kubectl(append(create, name, "--from-literal=KEY=VALUE")...))
}

// invented reports whether a name that pods refer to stands nowhere in the object that their maker is: its operator made it up.
func invented(c *stage.Context, name string) bool {
	m := c.Gang.Maker
	u := c.View.Object(m.Kind, c.Gang.Meta.Namespace, m.Name)
	if u == nil || u.Object["spec"] == nil {
		return false
	}
	text, err := u.MarshalJSON()
	return err == nil && !bytes.Contains(text, []byte(name))
}

// pulling finds that nothing is wrong yet; the image is on its way, or the kubelet has not begun.
func pulling(c *stage.Context, m gang.Member, events []view.Event) *stage.Finding {
	pull, done := stage.LatestEvent(events, "Pulling"), stage.LatestEvent(events, "Pulled", "Started")
	if pull != nil && (done == nil || done.Last.Before(pull.Last)) {
		image := strings.Trim(strings.TrimPrefix(pull.Message, "Pulling image "), `"`)
		return stage.Found(answer.ImagePulling, "image %s is being pulled, for %s", image, phrase.Age(c.View.Age(pull.Last))).SinceTime(pull.Last).Fact("image", image)
	}
	if f := notReady(c, m, events); f != nil {
		return f
	}
	at := m.Pod.CreationTimestamp.Time
	if m.Pod.Status.StartTime != nil {
		at = m.Pod.Status.StartTime.Time
	}
	f := stage.Found(answer.ContainersStarting, "containers are being started, for %s", phrase.Age(c.View.Age(at))).SinceTime(at)
	switch node := m.Pod.Spec.NodeName; {
	case c.View.Age(at) < slowStart:
	case m.Pod.Status.StartTime == nil && len(m.Pod.Status.ContainerStatuses) == 0:
		f.Message = fmt.Sprintf("the kubelet of %s has not begun with it, for %s", node, phrase.Age(c.View.Age(at)))
		f.Run(command.Kubectl("", "describe", "node", node))
	case len(events) == 0:
		f.Detail("nothing reports what its kubelet is at: events are kept for an hour").Run(c.Kubectl("describe", "pod", m.Pod.Name))
	}
	return f
}

// slowStart is after how long a pod on whose node nothing happens is looked at more closely.
const slowStart = 5 * time.Minute

// notReady finds that the containers run, and one of them, or the pod itself, is not ready; nil if it is not so.
func notReady(c *stage.Context, m gang.Member, events []view.Event) *stage.Finding {
	all := m.Pod.Status.ContainerStatuses
	if len(all) == 0 || slices.ContainsFunc(all, func(s corev1.ContainerStatus) bool { return s.State.Running == nil }) {
		return nil
	}
	i := slices.IndexFunc(all, func(s corev1.ContainerStatus) bool { return !s.Ready })
	if i < 0 {
		return gateNotReady(c, m)
	}
	at := all[i].State.Running.StartedAt.Time
	since := at
	if _, ready := podutil.GetPodCondition(&m.Pod.Status, corev1.ContainersReady); ready != nil && ready.Status == corev1.ConditionFalse {
		since = view.Later(at, ready.LastTransitionTime.Time)
	}
	f := stage.Found(answer.ContainersStarting, "container %s runs and is not ready, for %s", all[i].Name, phrase.Age(c.View.Age(since))).SinceTime(since).
		Fact("container", all[i].Name).Run(c.Kubectl("logs", m.Pod.Name, "-c", all[i].Name))
	if since.After(at) {
		f.Detail("it was ready before: it has run for %s", phrase.Age(c.View.Age(at)))
	}
	probe := "readiness"
	if all[i].Started != nil && !*all[i].Started {
		probe = "startup"
	}
	events = slices.DeleteFunc(slices.Clone(events), func(e view.Event) bool {
		return len(all) > 1 && e.Field == "" || e.Field != "" && e.Field != "spec.containers{"+all[i].Name+"}"
	})
	for _, e := range events {
		if e.Reason == "Unhealthy" && !e.Last.Before(at) && strings.HasPrefix(strings.ToLower(e.Message), probe+" probe") {
			f.Message += fmt.Sprintf(": its %s probe fails", probe)
			return details(neverReady(c, f.Fact("probe", probe), probe, c.View.Age(since)), e.Message)
		}
	}
	if e := stage.LatestEvent(events, "Unhealthy"); e != nil {
		details(f, e.Message)
	}
	return f
}

// readyWithin is how long a readiness probe may fail before it is not expected to pass by itself.
const readyWithin = 15 * time.Minute

// neverReady makes of the finding that a probe fails that waiting is useless, where a readiness probe has failed for long and others are made only when it passes. A member that
// nothing waits for may do its work all the same.
func neverReady(c *stage.Context, f *stage.Finding, probe string, failsFor time.Duration) *stage.Finding {
	g := c.Gang
	switch {
	case probe != "readiness" || failsFor <= readyWithin: // a container that does not pass its startup probe is started again
	case g.Maker != nil && g.Maker.Behind > 0:
		f.As(answer.Blocked, answer.User).Detail("%s: %s for it; podManagementPolicy cannot be changed in place", g.Sequential, phrase.Count(g.Maker.Behind, "further pod")+" "+phrase.Verb(int(g.Maker.Behind), "waits", "wait")).
			Run(c.Kubectl("get", "statefulset", g.Maker.Controller.Name, "-o", "yaml"))
	case g.Sequential != "" && g.Count(gang.NotDue, gang.Missing) > 0, g.Division == gang.ByRole && g.Siblings > 0:
		f.As(answer.Blocked, answer.User).Detail("what is made after it waits until it is ready")
	default:
		f.Detail("it may do its work all the same: readiness decides only what is sent to it by Services")
	}
	return f
}

// gateNotReady finds that a pod whose containers are all ready has a readiness gate that is not open: whoever put it there does that. It is nil if it has none.
func gateNotReady(c *stage.Context, m gang.Member) *stage.Finding {
	for _, gate := range m.Pod.Spec.ReadinessGates {
		open := func(cond corev1.PodCondition) bool {
			return cond.Type == gate.ConditionType && cond.Status == corev1.ConditionTrue
		}
		if !slices.ContainsFunc(m.Pod.Status.Conditions, open) {
			return stage.Found(answer.ContainersStarting, "its containers are ready, and its readiness gate %s is not", gate.ConditionType).Fact("gate", string(gate.ConditionType)).
				Run(c.Kubectl("get", "pod", m.Pod.Name, "-o", "yaml"))
		}
	}
	return nil
}
