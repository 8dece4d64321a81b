package life

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// failedForGood finds that members have failed for good without which the gang is below its minimum: no room brings them back, and the others work for nothing.
func failedForGood(c *stage.Context) *stage.Finding {
	g := c.Gang
	n := int(g.FailedIndexes.Count())
	last := lastForGood(c)
	how, holds := "", ""
	if t, _ := endOf(last); t != nil {
		how = " (" + phrase.Ending(t) + ")"
	}
	idle, _ := stage.IdleDevices(g)
	if idle > 0 {
		holds = fmt.Sprintf("; the others hold %s", phrase.Count(idle, "GPU"))
	}
	running := g.Count(gang.Running)
	f := stage.Found(answer.MemberLost, "%s run, and it needs %d: %s %s %s failed for good%s, and no pod is made of %s again%s", phrase.Fraction(running, gang.Sum(g.Total(), int32(n))), gang.Sum(g.Min, g.LacksForGood()),
		phrase.Verb(n, "index", "indexes"), g.FailedIndexes, phrase.Verb(n, "has", "have"), how, phrase.Verb(n, "it", "them"), holds).
		Fact("failedIndexes", g.FailedIndexes.String()).Fact("idleGPUs", idle)
	if last != nil {
		f.SinceTime(c.View.EndedAt(last))
	}
	if t, container := endOf(last); t != nil {
		f.Fact("exitCode", t.ExitCode).Run(c.Kubectl("logs", last.Name, "-c", container, "--tail=50"))
	}
	f.Detail("what they hold is free when the job is deleted: %s", command.Delete(g.Job))
	f.Detail("once its cause is mended, all members start again with: %s", shell.Join("gangctl", "resubmit", g.Reader.Argument(g.Meta.Name), "--name", g.Meta.Name+"-again", "-n", g.Meta.Namespace))
	return f
}

// endOf is how a container of a pod ended badly; nil for no pod.
func endOf(p *corev1.Pod) (*corev1.ContainerStateTerminated, string) {
	if p == nil {
		return nil, ""
	}
	return stage.BadEnd(p)
}

// lastForGood is the pod that ended last of those of indexes that have failed for good; nil if none is left.
func lastForGood(c *stage.Context) (last *corev1.Pod) {
	for _, p := range c.View.PodsOf(c.Gang.Job) {
		if p.Status.Phase == corev1.PodFailed && c.Gang.FailedForGood(p) && (last == nil || c.View.EndedAt(p).After(c.View.EndedAt(last))) {
			last = p
		}
	}
	return last
}
