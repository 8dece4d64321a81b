package start

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
)

// initContainer finds what keeps an init container from ending; nil if nothing does.
func initContainer(c *stage.Context, m gang.Member, index int, s corev1.ContainerStatus, events []view.Event) *stage.Finding {
	if running := s.State.Running != nil && (s.Ready || s.Started != nil && *s.Started); running && sidecar(m.Pod, index) {
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
		return details(probed(f, s.Name, failed, events), failed.Message, strings.TrimPrefix(failed.Reason, "Error")).SinceTime(failed.FinishedAt.Time).
			Fact("container", s.Name).Fact("exitCode", failed.ExitCode).Fact("restarts", s.RestartCount).
			Run(c.Kubectl("logs", m.Pod.Name, "-c", s.Name))
	case s.State.Running != nil && !s.Ready && !sidecar(m.Pod, index):
		at := s.State.Running.StartedAt.Time
		return stage.Found(answer.InitRunning, "init container %s has run for %s", s.Name, phrase.Age(c.View.Age(at))).SinceTime(at).
			Run(c.Kubectl("logs", m.Pod.Name, "-c", s.Name, "-f"))
	case s.State.Waiting != nil:
		return waitingContainer(c, m, s, events)
	}
	return nil
}

// sidecar reports whether an init container is one that runs alongside the others.
func sidecar(pod *corev1.Pod, index int) bool {
	return index < len(pod.Spec.InitContainers) && pod.Spec.InitContainers[index].RestartPolicy != nil
}

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
	create := []string{"create", kind}
	if kind == "secret" {
		create = append(create, "generic")
	}
	return f.Fact("kind", kind).Fact("name", name).Run(c.Kubectl(append(create, name, "--from-literal=KEY=VALUE")...))
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
	f := stage.Found(answer.ContainersStarting, "container %s runs and is not ready, for %s", all[i].Name, phrase.Age(c.View.Age(at))).SinceTime(at).
		Fact("container", all[i].Name).Run(c.Kubectl("logs", m.Pod.Name, "-c", all[i].Name))
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
			return details(neverReady(c, f.Fact("probe", probe), probe, c.View.Age(at)), e.Message)
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

// refusalReasons are the reasons of failed pods that a kubelet gives when it does not take a pod at all.
var refusalReasons = []string{"UnexpectedAdmissionError", "OutOf", "TopologyAffinityError", "SMTAlignmentError", "NodeAffinity", "NodeName", "NodePorts", "NodeShutdown", "Taint", "PodOS", "InvalidNodeInfo",
	"VolumeAttachmentLimitExceeded", "PodLevelResources", "UnsupportedPodLevelResources", "PodResourcesNotSupported"}

// byNodeItself are those that are about the node itself, and not about what it has of a resource.
var byNodeItself = []string{"NodeAffinity", "NodeName", "NodePorts", "NodeShutdown", "Taint", "PodOS", "InvalidNodeInfo"}

// refusedByNode finds that the pod has ended badly. Either its node did not take it, or its container failed.
func refusedByNode(c *stage.Context, m gang.Member) *stage.Finding {
	pod := m.Pod
	for _, reason := range refusalReasons {
		if strings.HasPrefix(pod.Status.Reason, reason) {
			node := pod.Spec.NodeName
			f := stage.Found(answer.NodeRefused, "the kubelet of %s refused the pod (%s): %s", node, pod.Status.Reason, cmp.Or(pod.Status.Message, "no reason was given")).
				Fact("node", node).Fact("reason", pod.Status.Reason)
			if slices.Contains(byNodeItself, reason) {
				return f.Detail("%s is not, or not any more, what the scheduler took it for: see its labels, its taints and its other pods", node).Run(command.Kubectl("", "describe", "node", node))
			}
			if shared := tooLarge.FindStringSubmatch(pod.Status.Message); shared != nil {
				return sharedTooLarge(c, f, corev1.ResourceName(shared[1]), resource.MustParse(shared[2]))
			}
			return f.Detail("the scheduler counts on more than %s has: keep new pods off it until it is repaired", node).Run(command.Kubectl("", "cordon", node))
		}
	}
	if displaced(pod) {
		return nil // how its containers ended then says nothing; that is for the stage of lost members
	}
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return crash(c, m, s, nil)
		}
	}
	return nil
}

// tooLarge is how NVIDIA's device plugin refuses more than one share of its devices, or of how many it is set to give.
var tooLarge = regexp.MustCompile(`request for '([^:' ]+): \d+' too large: maximum request size for shared resources is (\d{1,9})\b`)

// sharedTooLarge completes the refusal of a pod that requests more of a shared device than one pod may have: every node refuses that.
func sharedTooLarge(c *stage.Context, f *stage.Finding, name corev1.ResourceName, most resource.Quantity) *stage.Finding {
	text := fmt.Sprintf("request %s %s for each member", most.String(), name)
	return f.As(answer.Blocked, answer.User).Detail("%s is shared, and one pod may have %s of it: shares do not add up to a larger part of a device", name, most.String()).
		Fix(patch.Job(c.Gang, answer.Fix, text, map[string]any{"resource": string(name), "each": most.String()}, func(spec *whatif.Spec) {
			for i := range spec.Roles {
				containers := spec.Roles[i].Template.Spec.Containers
				for j := range containers {
					if has := containers[j].Resources.Limits[name]; has.Cmp(most) > 0 {
						podrequest.Set(&containers[j].Resources, name, most)
					}
				}
			}
		}))
}

// displaced reports whether a pod has ended because others had it end: its kubelet, or who evicted or preempted it.
func displaced(pod *corev1.Pod) bool {
	return slices.Contains([]string{"Evicted", "Preempting", "Terminated", "NodeLost"}, pod.Status.Reason) || gang.Disruption(pod) != nil
}
