package order

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/unplaced"
)

// reservedFor recognises what our scheduler reports of room that it keeps for others, in its reason for the members.
var reservedFor = regexp.MustCompile(`^room on [^;]+ is (?:reserved|held|being cleared) for [^;]+`)

// maxKept is how many bytes of what it reports are shown. A limit in the expression would cost half a mebibyte at every start of the program.
const maxKept = 1000

// reserved finds that the scheduler keeps the room for others: a reservation is in its memory, and objects show the place as free. Conditions of pods
// are written by those who may write their status, as schedulers do and users do not.
func reserved(c *stage.Context) *stage.Finding {
	if component.FindScheduler(c.View, c.Gang.Scheduler, c.Gang.Meta.Namespace).Down(c.View.Now) {
		return nil // it keeps nothing, and its message is old
	}
	for _, m := range c.Gang.Members {
		if m.Pod == nil || m.Bound() {
			continue
		}
		for _, condition := range m.Pod.Status.Conditions {
			if condition.Type != corev1.PodScheduled || condition.Status != corev1.ConditionFalse {
				continue
			}
			report, _, _ := unplaced.FromCondition(condition.Message)
			if kept := reservedFor.FindString(report.Why); kept != "" {
				return stage.Found(answer.ReservedByOthers, "it fits by what is free, but its scheduler keeps that for others: %s", strings.ToValidUTF8(kept[:min(len(kept), maxKept)], "")).
					See("v1", "Pod", &m.Pod.ObjectMeta, ".status.conditions").At(answer.StageOrder)
			}
		}
	}
	return nil
}
